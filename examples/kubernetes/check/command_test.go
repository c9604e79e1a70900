package check

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// wrong is the exit code of a command line that the command edda does not take.
const wrong = 2

// stamp is the linker flag that sets the version of a build.
const stamp = "-X main.stamped="

// edda is the command, built for this test as a release is.
func edda(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "edda")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", stamp+"v1.2.3", "-o", program,
		"./cmd/edda")
	build.Dir = "../../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, said)
	}
	return program
}

// runs runs the command against a database, and returns its exit code and its output.
func runs(t *testing.T, program, database string, arguments ...string) (int, string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, arguments...)
	c.Env = append(os.Environ(), "DATABASE_URL="+database)
	said, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(said)
}

// The command takes the arguments of the pages' pod, and the connection strings of the Secrets. There is no database,
// so each run fails: but not because its command line is wrong.
func TestTheCommandTakesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	program := edda(t)
	const nowhere = "postgres://shop_reader@127.0.0.1:1/shop?sslmode=disable"
	if exit, said := runs(t, program, nowhere, "version"); exit != 0 || !strings.HasPrefix(said, "edda v1.2.3, ") {
		t.Errorf("edda version: exit code %d: %s", exit, said)
	}
	for _, file := range []string{"../../../Dockerfile", "../../../.goreleaser.yaml"} {
		if !strings.Contains(read(t, file), stamp) {
			t.Errorf("%s does not stamp the version", file)
		}
	}
	arguments := named[*appsv1.Deployment](t, "shop-pages").Spec.Template.Spec.Containers[0].Args
	if exit, said := runs(t, program, nowhere, arguments...); exit == wrong || exit == 0 {
		t.Errorf("edda %q: exit code %d: %s", arguments, exit, said)
	}
	if exit, _ := runs(t, program, nowhere, append(arguments, "--raed-only")...); exit != wrong {
		t.Errorf("with a flag that it does not have the exit code is %d", exit)
	}
	urls := 0
	for _, secret := range of[*corev1.Secret](t) {
		database := secret.StringData["DATABASE_URL"]
		if database == "" {
			continue
		}
		urls++
		local := strings.NewReplacer("postgres-a.example.org:5432", "127.0.0.1:1", "postgres-b.example.org:5432",
			"127.0.0.1:1", "postgres.example.org:5432", "127.0.0.1:1").Replace(database)
		if strings.Contains(local, "example.org") {
			t.Errorf("Secret %s leads to another machine: %s", secret.Name, local)
			continue
		}
		if exit, said := runs(t, program, local, "migrate", "status"); exit != 1 ||
			!strings.Contains(said, "connection refused") {
			t.Errorf("Secret %s: exit code %d: %s", secret.Name, exit, said)
		}
	}
	if urls != 3 {
		t.Errorf("there are %d connection strings, want one for each role", urls)
	}
}
