package fault

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPointsAreArmedByAFile(t *testing.T) {
	old := file
	defer func() { file = old }()
	if file = ""; Value("a") != "" {
		t.Error("armed without a file")
	}
	file = filepath.Join(t.TempDir(), "faults")
	if Value("a") != "" {
		t.Error("armed by a file that is not there")
	}
	if err := os.WriteFile(file, []byte("b=1\na = 2\na=3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if Value("a") != "3" || Value("b") != "1" || Value("c") != "" {
		t.Errorf("a %q, b %q, c %q", Value("a"), Value("b"), Value("c"))
	}
}
