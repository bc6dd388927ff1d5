package check_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/opencluster/oclocks/internal/check"
)

// story has the last events of a history that are about a lock, with their requests.
func story(history []check.Event, name string, most int) string {
	var lines []string
	about := map[[2]string]bool{}
	for i := range history {
		e := &history[i]
		if e.Kind == check.Ask && e.Name == name {
			about[[2]string{e.Client, e.Request}] = true
		}
		if e.Name == name || about[[2]string{e.Client, e.Request}] && e.Request != "" {
			var line bytes.Buffer
			if err := check.NewWriter(&line, nil).Add(e); err != nil {
				lines = append(lines, fmt.Sprint(err))
			}
			lines = append(lines, strings.TrimSpace(line.String()))
		}
	}
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
