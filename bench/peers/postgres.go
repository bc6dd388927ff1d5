package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/opencluster/oclocks/bench/rig"
)

var postgresPeer = peer{
	Key: "postgres", Name: "PostgreSQL session locks, one server",
	Settings: "pg_advisory_lock, a connection for each worker; defaults, max_connections 1200",
	Lacks:    "not replicated; a session is a connection, and a process of the server; no fencing token; names are 64 bits",
	lacking: func() error {
		_, err := postgresProgram("initdb")
		return err
	},
	version: func(ctx context.Context) string {
		path, err := postgresProgram("postgres")
		if err != nil {
			return ""
		}
		return printed(ctx, path, "--version")
	},
	start: startPostgres,
}

// postgresProgram looks where Debian has it too: the newest version.
func postgresProgram(name string) (string, error) {
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); err == nil && len(found) > 0 {
		return slices.Max(found), nil
	}
	return needs(name, "apt-get install postgresql")
}

type postgresService struct {
	server *rig.Child
	url    string
	look   *pgx.Conn
}

func startPostgres(ctx context.Context, dir string) (_ service, err error) {
	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	initdb, err := postgresProgram("initdb")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	run := exec.CommandContext(ctx, initdb, "-D", data, "-U", "bench", "-A", "trust", "--no-sync")
	run.SysProcAttr, run.Dir = as(), dir
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	addresses, err := rig.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addresses[0])
	if err != nil {
		return nil, err
	}
	program, err := postgresProgram("postgres")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "-D", data, "-h", host, "-p", port, "-k", dir, "-c", "max_connections=1200")
	cmd.SysProcAttr, cmd.Dir = as(), dir
	s := &postgresService{url: "postgres://bench@" + addresses[0] + "/postgres?sslmode=disable"}
	if s.server, err = rig.Spawn(cmd, filepath.Join(dir, "log"), "database system is ready to accept connections"); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := s.server.Serving(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	if s.look, err = pgx.Connect(ctx, s.url); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// unprivileged gives a directory to the user postgres, since the server does not run as root.
func unprivileged(dir string) (func() *syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return func() *syscall.SysProcAttr { return nil }, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("postgres does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return nil, err
	}
	return func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}, nil
}

func (s *postgresService) Worker(ctx context.Context, _ int) (worker, error) {
	c, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return nil, err
	}
	return &postgresWorker{conn: c}, nil
}

func (s *postgresService) Waiting(ctx context.Context, _ string) (n int, err error) {
	err = s.look.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").Scan(&n)
	return n, err
}

func (s *postgresService) Victim(context.Context) (*rig.Child, error) { return s.server, nil }

func (s *postgresService) Stop() {
	if s.look != nil {
		_ = s.look.Close(context.Background()) // the server goes too
	}
	s.server.End(syscall.SIGQUIT) // its processes and its shared memory with it
}

type postgresWorker struct {
	conn *pgx.Conn
	key  int64
}

func (w *postgresWorker) Lock(ctx context.Context, name string) error {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	w.key = int64(h.Sum64())
	_, err := w.conn.Exec(ctx, "SELECT pg_advisory_lock($1)", w.key)
	return err
}

func (w *postgresWorker) Unlock(ctx context.Context) error {
	var held bool
	err := w.conn.QueryRow(ctx, "SELECT pg_advisory_unlock($1)", w.key).Scan(&held)
	if err == nil && !held {
		err = errors.New("the lock was not held")
	}
	return err
}

func (w *postgresWorker) Close() { _ = w.conn.Close(context.Background()) } // its locks end with it
