package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestZonesAreKept(t *testing.T) {
	dir := t.TempDir()
	if zones, err := SavedZones(dir); err != nil || zones != nil {
		t.Fatalf("nothing was kept: %v, %v", zones, err)
	}
	unnamed := true
	want := []Zone{{Name: "a", Open: true, Role: RoleAdmin}, {Name: "b", Unnamed: &unnamed, Quota: Quota{Holds: 3}}}
	if err := SaveZones(dir, want); err != nil {
		t.Fatal(err)
	}
	if got, err := SavedZones(dir); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, bad := range []string{"{", `[{"Name":"a b"}]`} {
		if err := os.WriteFile(filepath.Join(dir, zonesFile), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := SavedZones(dir); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
