// Command oclocks-cli takes, holds, releases and shows locks, and runs commands under them.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/opencluster/oclocks/internal/cli"
)

func main() {
	app := &cli.App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	app.CatchSignals()
	os.Exit(execute(context.Background(), app, os.Args[1:]))
}

// execute carries out one command line and gives the exit code.
func execute(ctx context.Context, app *cli.App, args []string) int {
	root := command(app)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	app.Command = cmd.CommandPath()
	if err != nil && strings.HasPrefix(err.Error(), "unknown command") { // cobra has no type for it
		err = fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	return app.Report(err)
}
