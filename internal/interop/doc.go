// Package interop has the tests that talk to a real daemon with software that is not ours: the stock nats CLI, a NATS
// client in another language, a shell. It has no other code, and nothing may import it.
//
// What the tests need besides Go is installed by themselves, pinned, into the user's cache (oclocks-interop), once for
// each version. To keep `make test` short and free of downloads, a tool that is not there yet is a reason to skip, unless
// OCLOCKS_REQUIRE_INTEROP=1 is set: then it is installed, and what cannot be installed is a failure. .ci/run sets it.
//
// Read tools_test.go (installation), then natscli_test.go, node_test.go (and node/locks.test.mjs), docs_test.go (the
// commands in README.md and docs/, run as they stand).
package interop
