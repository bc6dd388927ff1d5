package fault

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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

func TestWallIsMovedByTheFile(t *testing.T) {
	old := file
	defer func() { file = old }()
	if file = ""; time.Since(Wall()).Abs() > time.Minute {
		t.Error("moved without a file")
	}
	file = filepath.Join(t.TempDir(), "faults")
	if err := os.WriteFile(file, []byte("clock.wall=-3600\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Since(Wall()) < 59*time.Minute; {
		if time.Now().After(deadline) {
			t.Fatalf("not moved: %s", Wall())
		}
	}
}
