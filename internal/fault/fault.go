package fault

import (
	"os"
	"strings"
)

// Variable is the environment variable that names the file.
const Variable = "OCLOCKS_FAULTS"

var file = os.Getenv(Variable)

// File is the file with the faults, "" if there are none to come.
func File() string { return file }

// Value is what a fault point is armed with, "" if it is not.
func Value(name string) string {
	if file == "" {
		return ""
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "" // not armed yet
	}
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && key == name {
			return value
		}
	}
	return ""
}
