// Package conf is what a daemon is told: its settings (flags, environment, a YAML file), its zones, and the
// authentication file with the keys that everybody's permissions hang on. The commands oclocks-daemon and
// oclocks-config share it.
//
// It opens no connection, but those by which Verify looks whether others are there, and knows nothing of how locks behave. It
// does read and write files, under a lock where two processes may do so at the same time.
//
// Read in this order: role.go (what a role may do), zone.go, settings.go (what can be set, and what is valid), keys.go
// (the one table that drives flags, environment, file and help), load.go, file.go; then auth.go (keys and users),
// authfile.go (how they are kept), claims.go (the permissions themselves), zonekeys.go (how nodes share them). For a cluster:
// clustered.go (its settings), authority.go and identity.go (certificates), jointoken.go, curve.go and member.go (how a new
// node gets all that), routesfile.go. Then edit.go, natscontext.go, verify.go, verifycluster.go and probe.go, which serve
// oclocks-config.
package conf
