package check

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"

	appsv1 "k8s.io/api/apps/v1"
)

var containerFiles = []string{"../../../Dockerfile", "../Dockerfile"}

// stages parses a container file as BuildKit does. Its warnings are errors.
func stages(text string) (found []instructions.Stage, err error) {
	file, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	for _, w := range file.Warnings {
		return nil, fmt.Errorf("%s", w.Short)
	}
	var warned error
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) {
		warned = fmt.Errorf("%s: %s", rule, message)
	}})
	found, _, err = instructions.Parse(file.AST, lint)
	if err != nil {
		return nil, err
	}
	return found, warned
}

// image describes the last stage of a container file.
type image struct {
	base, user    string
	inside        []string // paths
	health, entry []string
}

// imageOf returns the image that a container file makes. It returns an error unless the image is made from scratch,
// runs as the user 65532, and has its entry point and the command of its health check in it.
func imageOf(text string) (i image, err error) {
	found, err := stages(text)
	if err != nil {
		return i, err
	}
	last := found[len(found)-1]
	i.base = last.BaseName
	for _, c := range last.Commands {
		switch c := c.(type) {
		case *instructions.CopyCommand:
			i.inside = append(i.inside, c.DestPath)
		case *instructions.UserCommand:
			i.user = c.User
		case *instructions.HealthCheckCommand:
			i.health = c.Health.Test
		case *instructions.EntrypointCommand:
			if i.entry != nil || c.PrependShell {
				return i, fmt.Errorf("the entry is %v, and there is one in the form of JSON", c.CmdLine)
			}
			i.entry = c.CmdLine
		case *instructions.ExposeCommand:
		default:
			return i, fmt.Errorf("%s in an image with one program", c.Name())
		}
	}
	switch {
	case i.base != "scratch" || len(found) != 2:
		return i, fmt.Errorf("the image is made from %s in %d stages", i.base, len(found))
	case i.user != "65532:65532": // a number: runAsNonRoot cannot check a name
		return i, fmt.Errorf("the user is %q", i.user)
	case len(i.health) != 4 || i.health[0] != "CMD" || !slices.Contains(i.inside, i.health[1]) ||
		i.health[2] != "healthcheck":
		return i, fmt.Errorf("the health check is %q, and the image has %q", i.health, i.inside)
	case len(i.entry) != 1 || !slices.Contains(i.inside, i.entry[0]):
		return i, fmt.Errorf("the entry is %q, and the image has %q", i.entry, i.inside)
	case slices.ContainsFunc(i.inside, func(f string) bool { return !path.IsAbs(f) }):
		return i, fmt.Errorf("of %q some are no absolute paths", i.inside)
	}
	return i, nil
}

func TestContainerFiles(t *testing.T) {
	t.Parallel()
	for _, file := range containerFiles {
		if _, err := imageOf(read(t, file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The image to build in has the version of Go that the module requires.
func TestContainerFilesBuildWithOurGo(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../../../go.mod"))
	if version == nil {
		t.Fatal("go.mod names no version of Go")
	}
	for _, file := range containerFiles {
		if want := "ARG GO_IMAGE=golang:" + version[1] + "\n"; !strings.Contains(read(t, file), want) {
			t.Errorf("%s has not %s", file, want)
		}
	}
}

// The check detects mistakes in a container file.
func TestBrokenContainerFilesAreRefused(t *testing.T) {
	t.Parallel()
	text := read(t, "../Dockerfile")
	for name, change := range map[string][2]string{
		"an unknown instruction": {"ENTRYPOINT", "ENTRYPOINTS"},
		"an unknown flag":        {"--start-period", "--start-time"},
		"a shell form":           {`ENTRYPOINT ["/program"]`, "ENTRYPOINT /program"},
		"root":                   {"USER 65532:65532", "USER root"},
		"no user":                {"USER 65532:65532", ""},
		"a larger image":         {"FROM scratch", "FROM debian"},
		"a missing command":      {`CMD ["/edda"`, `CMD ["/curl"`},
		"a shell for a step":     {"EXPOSE", "RUN true\nEXPOSE"},
		"two entries":            {"EXPOSE", `ENTRYPOINT ["/edda"]` + "\nEXPOSE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(text, change[0], change[1], 1)
			if broken == text {
				t.Fatalf("the file has no %q", change[0])
			}
			if _, err := imageOf(broken); err == nil {
				t.Errorf("%q in place of %q is taken", change[1], change[0])
			}
		})
	}
}

// The images expose the ports that the pods serve.
func TestContainerFilesExposeThePorts(t *testing.T) {
	t.Parallel()
	for file, name := range map[string]string{"../Dockerfile": "shop", "../../../Dockerfile": "shop-pages"} {
		for _, port := range named[*appsv1.Deployment](t, name).Spec.Template.Spec.Containers[0].Ports {
			exposed := regexp.MustCompile(fmt.Sprintf(`(?m)^EXPOSE .*\b%d\b`, port.ContainerPort))
			if !exposed.MatchString(read(t, file)) {
				t.Errorf("%s does not expose %d", file, port.ContainerPort)
			}
		}
	}
}
