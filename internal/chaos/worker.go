package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// worker is a client process on a host of its own: killed and started again, it has another life, and its clients other names.
type worker struct {
	slot int

	mu      sync.Mutex
	life    int
	downs   int
	stops   int
	over    bool
	process *daemons.Process
	tape    *tape
}

// actors are the clients of one process that have a connection each.
const actors = 5

// crowdSize is how many workers share one more client in some of the processes. So much is under way at a time that requests go in bundles.
const crowdSize = 12

// crowd is how many workers share a client in a process.
func (w *worker) crowd() int {
	if w.slot%3 == 1 {
		return crowdSize
	}
	return 0
}

func (w *worker) name() string { return fmt.Sprintf("p%d.%d", w.slot, w.life) }

// spawn starts a client process, unless a fault wants it to be down. The caller has w.mu.
func (r *run) spawn(w *worker) error {
	if w.downs > 0 || w.over {
		return nil
	}
	w.life++
	file := filepath.Join(r.dir, "history", w.name()+".jsonl")
	var urls []string
	for _, n := range r.members() {
		urls = append(urls, "nats://"+n.Listen)
	}
	text, err := json.Marshal(role{Process: w.name(), Seed: r.schedule.Seed<<16 + uint64(w.slot)<<8 + uint64(w.life), URLs: urls, //nolint:gosec // small numbers
		Zones: r.zones, Tape: file, Pace: r.Pace, Crowd: w.crowd()})
	if err != nil {
		return fmt.Errorf("start client process %d: %w", w.slot, err)
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start client process %d: %w", w.slot, err)
	}
	line := append(daemons.At(clientHost(w.slot)), exe)
	cmd := exec.Command(line[0], line[1:]...) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	tape := r.beginTape(file)
	if w.process, err = daemons.Start(cmd, (*exec.Cmd).StderrPipe, daemons.Output{File: filepath.Join(r.dir, "logs", fmt.Sprintf("p%d.log", w.slot)), Keep: 10}); err != nil {
		return err
	}
	w.tape = tape
	r.note("client process %s is started: process %d", w.name(), w.process.Cmd.Process.Pid)
	go r.attendClient(w, w.process)
	return nil
}

// beginTape adds a recording to the history.
func (r *run) beginTape(file string) *tape {
	r.tapes.Lock()
	defer r.tapes.Unlock()
	return r.history.begin(file)
}

// attendClient notices if a client process ends by itself, which is wrong.
func (r *run) attendClient(w *worker, p *daemons.Process) {
	<-p.Ended()
	p.Wait()
	w.mu.Lock()
	wanted := w.process != p || w.downs > 0 || w.over
	w.mu.Unlock()
	if !wanted {
		r.problem("client process %d ended by itself (%s): %s", w.slot, p.Cmd.ProcessState, r.logTail(fmt.Sprint("p", w.slot), 10))
	}
}

// bury tells that the clients of a process are no more. The caller has w.mu, and has waited for the process.
func (r *run) bury(w *worker) {
	for i := range actors + w.crowd() {
		r.own.add(check.Event{Kind: check.Died, Client: actorName(w.name(), i)})
	}
	r.tapes.Lock()
	defer r.tapes.Unlock()
	w.tape.ended = true
}

// actorName is a client's name in the history.
func actorName(process string, i int) string { return fmt.Sprintf("%s.%c", process, 'a'+i) }

func (r *run) killClient(w *worker) (*effect, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.downs++; w.downs == 1 && w.process != nil {
		w.process.Kill()
		r.bury(w)
	}
	return &effect{func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.downs--
		if err := r.spawn(w); err != nil {
			r.problem("%v", err)
		}
		return w.downs == 0
	}}, nil
}

func (r *run) stopClient(w *worker) *effect {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stops++
	p := w.process
	still := w.downs == 0 && w.stops == 1 && p.Signal(syscall.SIGSTOP) && stands(p)
	return &effect{func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.stops--; w.stops == 0 {
			w.process.Signal(syscall.SIGCONT)
		}
		return still
	}}
}

// cleanly bounds how long a client process may take to end when it is told to: all its requests are answered or given up by then.
const cleanly = 40 * time.Second

// dismiss ends all client processes in good order.
func (r *run) dismiss(ctx context.Context) {
	var all sync.WaitGroup
	for _, w := range r.workers {
		all.Go(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.over = true
			w.process.Signal(syscall.SIGTERM)
			timer := time.NewTimer(cleanly)
			defer timer.Stop()
			select {
			case <-w.process.Ended():
				w.process.Wait()
				if code := w.process.Cmd.ProcessState.ExitCode(); code != 0 {
					r.problem("client process %d ended with %d: %s", w.slot, code, r.logTail(fmt.Sprint("p", w.slot), 10))
				}
			case <-timer.C:
				r.problem("client process %d does not end: a request is neither answered nor over", w.slot)
				w.process.Signal(syscall.SIGQUIT)
				<-w.process.Ended()
			case <-ctx.Done():
			}
			w.process.Kill()
			r.bury(w)
		})
	}
	all.Wait()
}
