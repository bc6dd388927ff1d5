// Command oclocks-startup begins clusters: it makes the first node, lets further nodes join, and runs a whole cluster on one
// machine for trying.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "oclocks-startup:", err)
		os.Exit(1)
	}
}
