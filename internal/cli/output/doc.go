// Package output prints what brokers answer: as text for people, or as JSON for programs, one object a line with the
// field names of the wire.
//
// Whatever came from somebody else (names, holders, users, reasons) is shown through [Text], which quotes what a terminal
// would obey or hide. Times are shown as ages. The package asks nobody anything; the time comes in through [Printer].
//
// Read in this order: printer.go, fields.go and table.go (the two forms of text), grant.go, record.go, node.go, event.go,
// text.go (words, spans of time).
package output
