package chaos

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Ways counts how often the ways came about that nothing may depend on, and how often they broke: direct links between nodes, each end by
// itself, and lanes of clients; and the requests that nodes have passed on over direct links, and those that came in bundles. A run in which there were none has proved
// nothing about them.
type Ways struct {
	Links       int `json:"links"`
	LinksBroken int `json:"links_broken"`
	Passed      int `json:"passed"` // at least: a daemon that is killed takes some of its count with it
	Lanes       int `json:"lanes"`
	LanesBroken int `json:"lanes_broken"`
	Bundled     int `json:"bundled"` // requests; at least, as those that were passed on
}

// waysUsed counts them in the logs, and takes what the daemons have counted.
func (r *run) waysUsed() (w Ways, err error) {
	told := r.counted.sum()
	w.Passed, w.Bundled = told.passed, told.bundled
	for _, c := range []struct {
		logs, text string
		n          *int
	}{
		{"n*.log", linkUp, &w.Links}, {"n*.log", linkDown, &w.LinksBroken},
		{"p*.log", laneOpened, &w.Lanes}, {"p*.log", laneBroken, &w.LanesBroken},
	} {
		files, globErr := filepath.Glob(filepath.Join(r.dir, "logs", c.logs))
		err = errors.Join(err, globErr)
		for _, file := range files {
			n, countErr := linesWith(file, c.text)
			err = errors.Join(err, countErr)
			*c.n += n
		}
	}
	return w, err
}

// proved says what of the ways a run has not tried.
func (w Ways) proved() error {
	if w.Links == 0 || w.Lanes == 0 || w.Passed == 0 || w.Bundled == 0 {
		return fmt.Errorf("%d direct links and %d lanes came about, %d requests were passed on over the links, and %d came in bundles: that proves nothing about what there was none of",
			w.Links, w.Lanes, w.Passed, w.Bundled)
	}
	return nil
}

// linesWith is how many lines of a file have a text.
func linesWith(path, text string) (n int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("count lines: %w", err)
	}
	defer file.Close()
	in := bufio.NewScanner(file)
	for in.Buffer(nil, 1<<20); in.Scan(); {
		if bytes.Contains(in.Bytes(), []byte(text)) {
			n++
		}
	}
	if err := in.Err(); err != nil {
		return n, fmt.Errorf("count lines: %w", err)
	}
	return n, nil
}

func (w *Ways) add(o *Ways) {
	w.Links += o.Links
	w.LinksBroken += o.LinksBroken
	w.Passed += o.Passed
	w.Lanes += o.Lanes
	w.LanesBroken += o.LanesBroken
	w.Bundled += o.Bundled
}

// String is for people.
func (w Ways) String() string {
	return fmt.Sprintf("%d ends of direct links (%d broke), %d requests passed on over them, %d lanes (%d broke), %d requests in bundles",
		w.Links, w.LinksBroken, w.Passed, w.Lanes, w.LanesBroken, w.Bundled)
}
