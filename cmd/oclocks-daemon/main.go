// Command oclocks-daemon is the lock broker. Without arguments and configuration it serves one open zone on loopback.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
)

// stopTimeout is how long an orderly stop may take before the process ends anyway.
const stopTimeout = 15 * time.Second

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "oclocks-daemon:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "oclocks-daemon",
		Short: "The lock broker: serves locks to NATS clients",
		Long: `The lock broker: serves locks to NATS clients.

Without arguments it serves one open zone, "default", at 127.0.0.1:4222, keeps nothing on disk, and is ready for

  oclocks-cli lock -w 10s orders/4711 -- ./job.sh
  nats req locks.acquire orders/4711

For more than a try give it a directory, so that a restart forgets no lock, and zones with users:

  oclocks-daemon --data /var/lib/oclocks --config /etc/oclocks/oclocks.yaml

Every flag is an environment variable and a key of the configuration file as well; a flag wins over the environment, and
that over the file. SIGHUP reads zones, users and revocations again. SIGTERM and SIGINT stop in an orderly way: waiters
are told, what is decided is answered and written, clients are sent away.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is no flag, and there are no arguments: see oclocks-daemon --help", args[0])
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), func() (*conf.Settings, error) { return conf.Load(cmd.Flags(), os.Environ()) })
		},
	}
	conf.AddFlags(cmd.Flags())
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; for the flags see: oclocks-daemon --help", err)
	})
	return cmd
}

// serve runs a daemon until a signal or its own failure ends it.
func serve(ctx context.Context, load func() (*conf.Settings, error)) error {
	settings, err := load()
	if err != nil {
		return err
	}
	keepPace(os.Getenv)
	log := logger(settings)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	daemon, err := broker.Start(ctx, broker.Config{Settings: settings, Version: version(), Logger: log})
	if err != nil {
		return err
	}
	keepProcessors(os.Getenv) // not before the shards were counted
	over := make(chan error, 1)
	go func() { over <- daemon.Wait() }()
	for {
		select {
		case err := <-over:
			return errors.Join(err, stop(daemon))
		case s := <-signals:
			if s != syscall.SIGHUP {
				log.Info("signal", "signal", s.String())
				return stop(daemon)
			}
			reload(ctx, daemon, load, log)
		}
	}
}

func stop(daemon *broker.Daemon) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return daemon.Stop(ctx)
}

// reload takes over what can change at run time; on an error the daemon goes on with what it had.
func reload(ctx context.Context, daemon *broker.Daemon, load func() (*conf.Settings, error), log *slog.Logger) {
	settings, err := load()
	if err == nil {
		err = daemon.Reload(ctx, settings)
	}
	if err != nil {
		log.Error("the configuration was not taken over whole", "error", err)
		return
	}
	log.Info("configuration taken over", "zones", len(settings.Zones))
}

func logger(settings *conf.Settings) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(settings.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if settings.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

// version is the module's version, as the go command recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
