package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// strict refuses unknown fields, duplicate fields, and values of the wrong type.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// decode returns the objects of a file.
func decode(text []byte) (objects []runtime.Object, err error) {
	documents := yaml.NewYAMLReader(newReader(text))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		objects = append(objects, object)
	}
}

// manifests are all objects of the folder.
func manifests(t *testing.T) (all []runtime.Object) {
	t.Helper()
	files, err := filepath.Glob("../*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("the manifests are %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		all = append(all, objects...)
	}
	return all
}

// of returns the objects of one kind.
func of[T runtime.Object](t *testing.T) (some []T) {
	t.Helper()
	for _, object := range manifests(t) {
		if one, ok := object.(T); ok {
			some = append(some, one)
		}
	}
	if len(some) == 0 {
		t.Fatalf("there is no %T", *new(T))
	}
	return some
}

// named returns the object of a kind and a name.
func named[T interface {
	runtime.Object
	GetName() string
}](t *testing.T, name string) T {
	t.Helper()
	all := of[T](t)
	at := slices.IndexFunc(all, func(one T) bool { return one.GetName() == name })
	if at < 0 {
		t.Fatalf("there is no %T %s", *new(T), name)
	}
	return all[at]
}

// template is a pod template and its place in the manifests.
type template struct {
	in  string
	pod corev1.PodTemplateSpec
}

func templates(t *testing.T) (all []template) {
	t.Helper()
	for _, d := range of[*appsv1.Deployment](t) {
		all = append(all, template{"Deployment " + d.Name, d.Spec.Template})
	}
	for _, j := range of[*batchv1.Job](t) {
		all = append(all, template{"Job " + j.Name, j.Spec.Template})
	}
	return all
}

// Kubernetes defines every field of every manifest, and each value has the type of its field.
func TestManifestsAreValid(t *testing.T) {
	t.Parallel()
	if all := manifests(t); len(all) < 10 {
		t.Errorf("there are %d objects", len(all))
	}
}

// The check detects mistakes: each case breaks the manifest of the shop in one place.
func TestBrokenManifestsAreRefused(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a misspelt field":       {"terminationGracePeriodSeconds:", "terminationGracePeriodSecond:"},
		"a field of another one": {"replicas: 2", "completions: 2"},
		"a wrong type":           {"replicas: 2", `replicas: "2"`},
		"a quantity":             {"memory: 256Mi", "memory: 256 Mi"},
		"an unknown kind":        {"kind: PodDisruptionBudget", "kind: PodDisruptionBudgets"},
		"an old version":         {"policy/v1", "policy/v0"},
		"a field twice":          {"replicas: 2", "replicas: 2\n  replicas: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
			if bytes.Equal(broken, text) {
				t.Fatalf("the manifest has no %q", change[0])
			}
			if _, err := decode(broken); err == nil {
				t.Errorf("%q in place of %q is taken", change[1], change[0])
			}
		})
	}
}
