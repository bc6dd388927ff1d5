// Package admin is how operators administer a running cluster: the requests of their tools, and the node's answers.
//
// Requests go over NATS, in the account of the nodes, to the subject admin.<operation>.<key>. Whoever can read a node's data
// directory has the keys of that account; [Dial] makes credentials from them that count for minutes and are good for
// nothing but these requests (conf.Auth.AdminUser), and finds the daemon by the file that it writes into the directory
// (conf.Running). Any node answers for the whole cluster: a change goes to the leader, and a state is read after everything
// that was committed before. So a tool needs one node that runs, the one on its machine.
//
// No secret is in an answer or in a request, since the clients' port need not have TLS: keys of a new zone are made by the
// node that is asked, and credentials of a user, as well as join tokens, by the tool, from the keys in the data directory.
//
// Every request that changes something is one line in the log of the node that carried it out: who (the key, and the person
// that the tool says it is), what, and what came of it.
//
// This package decides nothing: what can be changed, and to what, is in conf/shared. It knows nothing of locks.
//
// Read in this order: wire.go (what is asked and answered), server.go, answer.go, client.go.
package admin
