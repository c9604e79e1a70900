package check

import (
	"bufio"
	"bytes"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func newReader(text []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(text)) }

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// atTheEnd is the time from the end of a drain to the end of the process: its connections are closed.
const atTheEnd = 10 * time.Second

// A pod has the time for preStop, for the drain of its endpoints and for its end.
func TestGracePeriodCoversTheDrain(t *testing.T) {
	t.Parallel()
	set := regexp.MustCompile(`f\.Duration\("Drain", &o\.Drain, (\d+)\*time\.Second,`)
	found := set.FindStringSubmatch(read(t, "../../../bus/endpoint.go"))
	if found == nil {
		t.Fatal("bus/endpoint.go does not say what Drain is")
	}
	seconds, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	shop := named[*appsv1.Deployment](t, "shop").Spec.Template.Spec
	need := time.Duration(seconds)*time.Second + atTheEnd
	for _, c := range shop.Containers {
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil {
			t.Fatalf("container %s has no preStop that sleeps: Services still send it requests when it ends", c.Name)
		}
		need += time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	}
	if grace := shop.TerminationGracePeriodSeconds; grace == nil || time.Duration(*grace)*time.Second < need {
		t.Errorf("terminationGracePeriodSeconds is %v, want %v at least", grace, need)
	}
}

// Each port name in a probe, a Service or a policy is a port of the pods that it selects.
func TestPortsHaveTheirNames(t *testing.T) {
	t.Parallel()
	for _, in := range templates(t) {
		for _, c := range in.pod.Spec.Containers {
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if probe != nil && !has([]corev1.Container{c}, probe.HTTPGet.Port) {
					t.Errorf("%s: a probe of %s asks port %s, which it has not", in.in, c.Name,
						probe.HTTPGet.Port.String())
				}
			}
		}
	}
	for _, service := range of[*corev1.Service](t) {
		for _, port := range service.Spec.Ports {
			for _, in := range selected(t, &metav1.LabelSelector{MatchLabels: service.Spec.Selector}) {
				if !has(in.pod.Spec.Containers, port.TargetPort) {
					t.Errorf("Service %s: %s has no port %s", service.Name, in.in, port.TargetPort.String())
				}
			}
		}
	}
	for _, policy := range of[*networkingv1.NetworkPolicy](t) {
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				for _, in := range selected(t, &policy.Spec.PodSelector) {
					if !has(in.pod.Spec.Containers, *port.Port) {
						t.Errorf("NetworkPolicy %s: %s has no port %s", policy.Name, in.in, port.Port.String())
					}
				}
			}
		}
	}
}

func has(containers []corev1.Container, port intstr.IntOrString) bool {
	return slices.ContainsFunc(containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return port.Type == intstr.String && p.Name == port.StrVal ||
				port.Type == intstr.Int && p.ContainerPort == port.IntVal
		})
	})
}

// selected are the templates whose pods a selector means. It means one at least.
func selected(t *testing.T, by *metav1.LabelSelector) (some []template) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range templates(t) {
		if selector.Matches(labels.Set(in.pod.Labels)) {
			some = append(some, in)
		}
	}
	if len(some) == 0 {
		t.Errorf("%s selects no pod", selector)
	}
	return some
}

// Each selector matches a pod, and a disruption budget allows a node to be drained.
func TestSelectorsSelect(t *testing.T) {
	t.Parallel()
	for _, d := range of[*appsv1.Deployment](t) {
		if in := selected(t, d.Spec.Selector); len(in) != 1 {
			t.Errorf("Deployment %s selects %d templates", d.Name, len(in))
		}
	}
	for _, budget := range of[*policyv1.PodDisruptionBudget](t) {
		selected(t, budget.Spec.Selector)
		d := named[*appsv1.Deployment](t, budget.Name)
		most := budget.Spec.MaxUnavailable
		if most == nil || most.IntValue() < 1 || int(*d.Spec.Replicas) <= most.IntValue() {
			t.Errorf("PodDisruptionBudget %s allows %v of %d pods to be away", budget.Name, most, *d.Spec.Replicas)
		}
	}
	policies := of[*networkingv1.NetworkPolicy](t)
	for _, in := range templates(t) {
		if !slices.ContainsFunc(policies, func(p *networkingv1.NetworkPolicy) bool {
			s, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
			return err == nil && s.Matches(labels.Set(in.pod.Labels)) &&
				slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) &&
				slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}) {
			t.Errorf("no NetworkPolicy closes both directions of %s", in.in)
		}
	}
}

// Each pod gets one database role, the weakest that suffices. Only the Job gets the owner's.
func TestEachPodHasItsRole(t *testing.T) {
	t.Parallel()
	role := map[string]string{"Job shop-setup": "shop-owner", "Deployment shop": "shop-runtime",
		"Deployment shop-pages": "shop-reader"}
	secrets := of[*corev1.Secret](t)
	for _, in := range templates(t) {
		urls := 0
		for _, c := range in.pod.Spec.Containers {
			for _, variable := range c.Env {
				if variable.ValueFrom == nil {
					if strings.Contains(variable.Value, "://") {
						t.Errorf("%s: %s has the value of %s, and not a Secret", in.in, c.Name, variable.Name)
					}
					continue
				}
				from := variable.ValueFrom.SecretKeyRef
				if !slices.ContainsFunc(secrets, func(s *corev1.Secret) bool {
					return s.Name == from.Name && s.StringData[from.Key] != ""
				}) {
					t.Errorf("%s: there is no Secret %s with %s", in.in, from.Name, from.Key)
				}
				if variable.Name == "DATABASE_URL" {
					urls++
					if from.Name != role[in.in] {
						t.Errorf("%s has the role of %s, want %s", in.in, from.Name, role[in.in])
					}
				}
			}
		}
		if urls != 1 {
			t.Errorf("%s has %d DATABASE_URLs", in.in, urls)
		}
	}
}

// A container runs without root, without a way to more rights, on files that it cannot write, within bounds.
func TestContainersMayDoLittle(t *testing.T) {
	t.Parallel()
	for _, in := range templates(t) {
		pod := in.pod.Spec
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil ||
			pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pod may do more than it needs", in.in)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.Capabilities == nil ||
				!slices.Contains(s.Capabilities.Drop, "ALL") {
				t.Errorf("%s: container %s may do more than it needs", in.in, c.Name)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: container %s has no bounds", in.in, c.Name)
			}
		}
	}
}

// The manifests set only variables that the program reads, and all that it requires.
func TestVariablesAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	var program strings.Builder
	for _, file := range []string{"setup.go", "main.go", "serve.go", "pages.go"} {
		program.WriteString(read(t, "../../tutorial/shop/"+file))
	}
	given := map[string]bool{}
	for _, in := range templates(t) {
		for _, c := range in.pod.Spec.Containers {
			for _, variable := range c.Env {
				given[variable.Name] = true
				if strings.HasPrefix(variable.Name, "SHOP_") &&
					!strings.Contains(program.String(), `"`+variable.Name+`"`) {
					t.Errorf("%s: the shop does not read %s", in.in, variable.Name)
				}
			}
		}
	}
	for _, variable := range regexp.MustCompile(`os\.Getenv\("(\w+)"\)`).FindAllStringSubmatch(program.String(), -1) {
		if !given[variable[1]] {
			t.Errorf("no manifest gives the shop %s", variable[1])
		}
	}
}
