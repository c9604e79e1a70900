package pgdev

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAProgramIsFoundInThePathAndInItsDirectories(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	remedies := errors.New("install it")
	g := Program{Name: "server", Package: "server", Remedies: remedies,
		Dirs: []string{filepath.Join(root, "lib/*/bin")}}
	p := places{path: filepath.Join(root, "bin")}
	if _, err := p.program(t.Context(), t.Output(), g); !errors.Is(err, remedies) {
		t.Errorf("nothing is installed: %v, want the remedies", err)
	}
	for _, file := range []string{"lib/3/bin/server", "bin/server"} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		if got, err := p.program(t.Context(), t.Output(), g); err != nil || got != path {
			t.Errorf("%s, %v, want %s", got, err, path)
		}
	}
	g.First = true
	if got, err := p.program(t.Context(), t.Output(), g); err != nil || got != filepath.Join(root, "lib/3/bin/server") {
		t.Errorf("%s, %v, want the one of its directory", got, err)
	}
}
