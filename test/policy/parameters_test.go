//go:build !kubernetes134

package policy_test

import (
	"context"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"kata-device-plugin/test/plane"
)

const (
	policy = "parameters." + driver
	head   = `"apiVersion":"vfio.katacontainers.io/v1alpha1","kind":"DeviceConfig"`
)

// opaque are parameters of a driver.
func opaque(of, parameters string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: of, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
	}}
}

func spec(all ...resourceapi.DeviceConfiguration) resourceapi.ResourceClaimSpec {
	var s resourceapi.ResourceClaimSpec
	s.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu." + driver}}}
	for _, c := range all {
		s.Devices.Config = append(s.Devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: c})
	}
	return s
}

func claim(all ...resourceapi.DeviceConfiguration) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: spec(all...)}
}

func class(name string, all ...resourceapi.DeviceConfiguration) *resourceapi.DeviceClass {
	c := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, d := range all {
		c.Spec.Config = append(c.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: d})
	}
	return c
}

// TestParameters: what the driver would refuse is refused when it is written, in all three places,
// and what is another driver's is not this policy's affair.
func TestParameters(t *testing.T) {
	versions(t, func(t *testing.T, p *plane.Plane) {
		bad := opaque(driver, `{`+head+`,"vfioNodes":"both"}`)
		before, err := p.Client().ResourceV1().ResourceClaims("default").Create(t.Context(), claim(bad), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p.CreateFile(t, deployed+"admission.yaml")
		inEffect(t, policy, func(ctx context.Context) error {
			_, err := p.Client().ResourceV1().DeviceClasses().Create(ctx, class("x", bad), dry())
			return err
		})
		const fields, values, kind = "has no field ", "vfioNodes of a DeviceConfig", "are a DeviceConfig of"
		for _, test := range []struct {
			name string
			all  []resourceapi.DeviceConfiguration
			want string
		}{
			{"none", nil, ""},
			{"nothing said", []resourceapi.DeviceConfiguration{opaque(driver, `{`+head+`}`)}, ""},
			{"cdev", []resourceapi.DeviceConfiguration{opaque(driver, `{`+head+`,"vfioNodes":"cdev"}`)}, ""},
			{"group", []resourceapi.DeviceConfiguration{opaque(driver, `{`+head+`,"vfioNodes":"group"}`)}, ""},
			{"another value", []resourceapi.DeviceConfiguration{bad}, values},
			{"a number", []resourceapi.DeviceConfiguration{opaque(driver, `{`+head+`,"vfioNodes":1}`)}, values},
			{"null", []resourceapi.DeviceConfiguration{opaque(driver, `{`+head+`,"vfioNodes":null}`)}, values},
			{"misspelled", []resourceapi.DeviceConfiguration{opaque(driver, `{`+head+`,"vfioNode":"group"}`)}, fields + "vfioNode"},
			{"in capitals", []resourceapi.DeviceConfiguration{opaque(driver, `{`+head+`,"VFIONodes":"group"}`)}, fields + "VFIONodes"},
			{"nested", []resourceapi.DeviceConfiguration{opaque(driver, `{`+head+`,"more":{"vfioNodes":"group"}}`)}, fields + "more"},
			{"another version", []resourceapi.DeviceConfiguration{opaque(driver, `{"apiVersion":"vfio.katacontainers.io/v1","kind":"DeviceConfig"}`)}, kind},
			{"another kind", []resourceapi.DeviceConfiguration{opaque(driver, `{"apiVersion":"vfio.katacontainers.io/v1alpha1","kind":"GpuConfig"}`)}, kind},
			{"empty", []resourceapi.DeviceConfiguration{opaque(driver, `{}`)}, kind},
			{"another driver's", []resourceapi.DeviceConfiguration{opaque("gpu.nvidia.com", `{"anything":[1,{}]}`)}, ""},
			{"the second is bad", []resourceapi.DeviceConfiguration{
				opaque("gpu.nvidia.com", `{"a":1}`), opaque(driver, `{`+head+`,"vfioNodes":"cdev"}`), bad,
			}, values},
		} {
			for what, do := range writers(p.Client(), test.all) {
				if err := expect(do(t.Context()), test.want); err != nil {
					t.Errorf("%s, in a %s: %v", test.name, what, err)
				}
			}
		}
		stays(t, p.Client(), before, bad)
	})
}

// writers are the ways in which somebody may bring parameters in.
func writers(c kubernetes.Interface, all []resourceapi.DeviceConfiguration) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"claim": func(ctx context.Context) error {
			_, err := c.ResourceV1().ResourceClaims("default").Create(ctx, func() *resourceapi.ResourceClaim {
				o := claim(all...)
				o.Name = "y"
				return o
			}(), dry())
			return err
		},
		"template": func(ctx context.Context) error {
			o := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			o.Spec.Spec = spec(all...)
			_, err := c.ResourceV1().ResourceClaimTemplates("default").Create(ctx, o, dry())
			return err
		},
		"class": func(ctx context.Context) error {
			_, err := c.ResourceV1().DeviceClasses().Create(ctx, class("x", all...), dry())
			return err
		},
	}
}

// stays: what was there before the policy can be changed and ended, and a class cannot become bad.
func stays(t *testing.T, c kubernetes.Interface, before *resourceapi.ResourceClaim, bad resourceapi.DeviceConfiguration) {
	t.Helper()
	before.Labels = map[string]string{"a": "b"}
	if _, err := c.ResourceV1().ResourceClaims("default").Update(t.Context(), before, metav1.UpdateOptions{}); err != nil {
		t.Errorf("change a claim that was there before the policy: %v", err)
	}
	if err := c.ResourceV1().ResourceClaims("default").Delete(t.Context(), before.Name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("end a claim that was there before the policy: %v", err)
	}
	good, err := c.ResourceV1().DeviceClasses().Create(t.Context(), class("good"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	good.Spec.Config = class("", bad).Spec.Config
	_, err = c.ResourceV1().DeviceClasses().Update(t.Context(), good, metav1.UpdateOptions{})
	if err := expect(err, policy); err != nil {
		t.Errorf("change a class: %v", err)
	}
}
