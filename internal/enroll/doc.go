// Package enroll lets a new node into the cluster: with a join token it gets the cluster's certificate authority, keys and
// addresses from any daemon, over the clients' port.
//
// That port may be plain TCP, and somebody may sit on the line. So nothing rests on the connection. What the new node asks
// is sealed for the cluster's curve key, which is in the token, and signed with the token's own key, which never leaves the
// new node; the answer is sealed for a key that the new node made for this one question, and by the cluster's curve key.
// Whoever changes, repeats or answers a message achieves no more than that the new node has to ask again.
//
// A token lets one node in. The daemons that hear the request remember it until the token expires; the same node may ask
// again, since an answer may be lost. A daemon that was cut off, or that has been started since, does not
// know that a token was used: that is why tokens live short.
//
// Read in this order: message.go (what is said), join.go (the new node), serve.go (the daemons), errors.go.
package enroll
