package ask

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// ErrNoAnswer says that the input ended before there was an answer.
var ErrNoAnswer = errors.New("no answer")

// Asker asks. The zero value has nobody to ask.
type Asker struct {
	In  *bufio.Reader // nil: nobody is there
	Out io.Writer
}

// Terminal is an Asker that asks if both in and out are terminals.
func Terminal(in, out *os.File) *Asker {
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return &Asker{}
	}
	return &Asker{In: bufio.NewReader(in), Out: out}
}

// Able says whether there is somebody to ask.
func (a *Asker) Able() bool { return a.In != nil }

// Text asks until check accepts the answer; an empty line is the default. check gives the error to show, and may be nil.
// ErrNoAnswer if the input ends.
func (a *Asker) Text(question, def string, check func(string) error) (string, error) {
	for {
		if def == "" {
			fmt.Fprintf(a.Out, "%s: ", question)
		} else {
			fmt.Fprintf(a.Out, "%s [%s]: ", question, def)
		}
		line, err := a.In.ReadString('\n')
		answer := strings.TrimSpace(line)
		if err != nil && answer == "" {
			return "", fmt.Errorf("%s: %w", question, ErrNoAnswer)
		}
		if answer == "" {
			answer = def
		}
		if check == nil {
			return answer, nil
		}
		wrong := check(answer)
		if wrong == nil {
			return answer, nil
		}
		fmt.Fprintf(a.Out, "  %v\n", wrong)
	}
}

// Yes asks for yes or no.
func (a *Asker) Yes(question string, def bool) (bool, error) {
	shown := "yes"
	if !def {
		shown = "no"
	}
	yes := def
	_, err := a.Text(question, shown, func(answer string) error {
		switch strings.ToLower(answer) {
		case "yes", "y":
			yes = true
		case "no", "n":
			yes = false
		default:
			return errors.New("please answer yes or no")
		}
		return nil
	})
	return yes, err
}
