package conf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestHandOut(t *testing.T) {
	a, dir := openAuth(t, t.TempDir()), t.TempDir()
	environ := []string{"HOME=" + dir}
	h := Handout{Zone: "orders", Name: "alice", Role: RoleUser, Creds: filepath.Join(dir, "a.creds"), Context: "orders", URL: "nats://x:1"}
	key, path, err := a.HandOut(h, environ)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, h.Creds} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	users, err := a.Users("orders")
	if err != nil || len(users) != 1 || users[0].Key != key {
		t.Errorf("users %v, %v", users, err)
	}

	if _, _, err := a.HandOut(h, environ); !errors.Is(err, fs.ErrExist) { // the file is there
		t.Errorf("got %v", err)
	}
	h.Creds = filepath.Join(dir, "b.creds")
	if _, _, err := a.HandOut(h, environ); !errors.Is(err, fs.ErrExist) { // the context is there
		t.Errorf("got %v", err)
	}
	h.Context, h.Creds = "other", filepath.Join(dir, "absent", "c.creds")
	if _, _, err := a.HandOut(h, environ); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	for _, gone := range []string{filepath.Join(dir, "b.creds"), filepath.Join(filepath.Dir(path), "other.json")} {
		if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", gone, err)
		}
	}
	if users, err = a.Users("orders"); err != nil {
		t.Fatal(err)
	}
	for _, u := range users { // credentials that nobody got do not count
		if (u.Status(time.Now()) == "valid") != (u.Key == key) {
			t.Errorf("%+v", u)
		}
	}
	if len(users) != 3 {
		t.Errorf("%d users", len(users))
	}
}
