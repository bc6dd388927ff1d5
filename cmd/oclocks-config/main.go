// Command oclocks-config sets up a lock broker: its zones, its users with their credentials, and its settings.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "oclocks-config:", err)
		os.Exit(1)
	}
}
