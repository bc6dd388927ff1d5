// Command simulate runs clusters made of the code that ships through trouble (package sim): many seeds, for as long as told, or one
// again.
//
//	go run ./internal/sim/simulate -time=30m -jobs=2 -ledger=docs/sim-ledger.jsonl
//	go run ./internal/sim/simulate -seed=17 [-without=… -skip=… -nodes=… -clients=… -trouble=…] [-shrink=30s]
//	go run ./internal/sim/simulate -sum=docs/sim-ledger.jsonl
//
// The exit status is 1 if a promise was not kept. The command line that a failing seed prints replays it.
package main
