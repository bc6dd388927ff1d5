// Package e2e tests the whole: real processes of the commands in this repository, killed, stopped and cut off. It has
// tests only. A test that needs a client process of its own runs this test binary again (see child_test.go).
package e2e
