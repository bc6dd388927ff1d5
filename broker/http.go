package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// healthTimeout is how long a shard may take to get to a health check's turn.
const healthTimeout = 2 * time.Second

// httpServer serves /healthz (every shard makes progress), /readyz (requests are taken) and /metrics.
type httpServer struct {
	server *http.Server
	addr   string
	done   chan struct{}
}

func (d *Daemon) serveHTTP(listen string) (*httpServer, error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen for health and metrics: %w; choose another address with --http, or --http off", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { tell(w, d.healthy(r.Context())) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { tell(w, d.readiness()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.metrics.registry, promhttp.HandlerOpts{}))
	h := &httpServer{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute},
		addr:   listener.Addr().String(), done: make(chan struct{}),
	}
	go func() {
		defer close(h.done)
		if err := h.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error("the HTTP server ended", "error", err)
		}
	}()
	return h, nil
}

func (h *httpServer) stop(ctx context.Context) error {
	err := h.server.Shutdown(ctx)
	<-h.done
	if err != nil {
		return fmt.Errorf("stop the HTTP server: %w", err)
	}
	return nil
}

func tell(w http.ResponseWriter, err error) {
	text := "ok\n"
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = err.Error() + "\n"
	}
	io.WriteString(w, text) //nolint:errcheck // the asker has gone: nobody is left to be told
}

// healthy asks every shard for a sign of life.
func (d *Daemon) healthy(ctx context.Context) error {
	if err := d.failure.Load(); err != nil {
		return *err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	for _, s := range d.shards {
		alive := make(chan struct{})
		s.queue.put(&task{kind: taskCall, call: func(*shard) { close(alive) }})
		select {
		case <-alive:
		case <-s.done:
		case <-ctx.Done():
			return fmt.Errorf("shard %d does not answer", s.index)
		}
	}
	return nil
}

func (d *Daemon) readiness() error {
	switch {
	case d.control.Stays():
		return errors.New("not serving: this node was removed from the cluster, and goes on for its vote until the others can decide without it")
	case !d.ready.Load():
		return errors.New("not serving: starting or stopping")
	}
	return nil
}
