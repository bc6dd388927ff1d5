package boottime

import (
	"fmt"
	"os"
	"strings"
)

// BootID names this start of the machine's kernel: it differs after every restart of the machine and is the same for all
// containers on it. The error is the one of reading /proc, or tells that the file was empty.
func BootID() (string, error) {
	const file = "/proc/sys/kernel/random/boot_id"
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the kernel's boot id: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if id == "" {
		return "", fmt.Errorf("read the kernel's boot id: %s is empty", file)
	}
	return id, nil
}
