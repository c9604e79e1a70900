package scaffold

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed program
var program embed.FS

const (
	edda      = "github.com/edda-go/edda"
	goVersion = "1.25.0"
	mostName  = 20 // of a private Postgres
)

// Options of a program. Folder is required, and Version or Replace.
type Options struct {
	Folder  string // created if it does not exist
	Module  string // "" is the last part of Folder
	Version string // of Edda, like v1.2.3
	Replace string // a folder with the source of Edda, to use in place of a version
}

// Write writes the program, and returns the names of its files in the folder.
func Write(o Options) (files []string, err error) {
	if o.Folder, err = filepath.Abs(o.Folder); err != nil {
		return nil, fmt.Errorf("the folder: %w", err)
	}
	o.Module = cmp.Or(o.Module, filepath.Base(o.Folder))
	if err := checkModule(o.Module); err != nil {
		return nil, err
	}
	mod, err := o.goMod()
	if err != nil {
		return nil, err
	}
	if err := makeEmpty(o.Folder); err != nil {
		return nil, err
	}
	contents := map[string]string{"go.mod": mod}
	sources, err := fs.ReadDir(program, "program")
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		text, err := program.ReadFile("program/" + source.Name())
		if err != nil {
			return nil, err
		}
		contents[strings.Replace(source.Name(), "gitignore", ".gitignore", 1)] = o.named(string(text))
	}
	for name, text := range contents {
		if err := create(filepath.Join(o.Folder, name), text); err != nil {
			return nil, err
		}
		files = append(files, name)
	}
	slices.Sort(files)
	return files, nil
}

// name returns the name of the program.
func (o Options) name() string { return path.Base(o.Module) }

var notInDatabases = regexp.MustCompile(`[^a-z0-9_-]+`)

// named replaces the name "program" by the name of the program.
func (o Options) named(text string) string {
	database := notInDatabases.ReplaceAllString(strings.ToLower(o.name()), "-")
	return strings.NewReplacer(
		"Command program ", "Command "+o.name()+" ",
		"# program\n", "# "+o.name()+"\n",
		"/program\n", "/"+o.name()+"\n",
		`(ctx, "program")`, `(ctx, "`+database[:min(len(database), mostName)]+`")`,
	).Replace(text)
}

// goMod returns the contents of go.mod.
func (o Options) goMod() (string, error) {
	text := "module " + o.Module + "\n\ngo " + goVersion + "\n\nrequire " + edda + " "
	if o.Replace == "" {
		return text + o.Version + "\n", nil
	}
	at, err := filepath.Abs(o.Replace)
	if err != nil {
		return "", fmt.Errorf("the source of Edda: %w", err)
	}
	mod, err := os.ReadFile(filepath.Join(at, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+edda+"\n") {
		return "", fmt.Errorf("%s is not the source of Edda: its go.mod names a different module", at)
	}
	if strings.ContainsAny(at, " \t\"'`(),") {
		at = strconv.Quote(at)
	}
	return fmt.Sprintf("%sv0.0.0\n\nreplace %s => %s\n", text, edda, at), nil
}

var (
	element  = regexp.MustCompile(`^[a-zA-Z0-9_~-]+(\.[a-zA-Z0-9_~-]+)*$`)
	errTaken = errors.New("is not empty: name a different one, or empty it")
)

// standard has the first parts of the paths of Go's own packages, which a module must not use.
var standard = strings.Fields(`archive bufio builtin bytes cmd cmp compress container context crypto database debug
	embed encoding errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path
	plugin reflect regexp runtime slices sort strconv strings structs sync syscall testing text time unicode unique
	unsafe vendor weak`)

// checkModule returns an error if the path of a module is invalid.
func checkModule(name string) error {
	parts := strings.Split(name, "/")
	if slices.Contains(standard, parts[0]) {
		return fmt.Errorf("module %q: package %s belongs to Go: choose a different name, such as example.com/%s", name,
			parts[0], name)
	}
	for _, part := range parts {
		if !element.MatchString(part) || part[0] == '-' {
			return fmt.Errorf("module %q: want letters, digits and the characters - _ . ~ between slashes, such as "+
				"example.com/shop", name)
		}
	}
	return nil
}

// makeEmpty creates the folder, or checks that it is empty.
func makeEmpty(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	there, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("read the folder: %w", err)
	}
	if len(there) > 0 {
		return fmt.Errorf("folder %s %w", folder, errTaken)
	}
	return nil
}

func create(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write the program: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the program: %w", err)
	}
	return nil
}
