package render_test

import (
	"fmt"

	"kata-device-plugin/internal/render"
)

// A platform that has moved its H100 pools to claims, and pairs each GPU with a NIC.
func ExampleRender() {
	policy, err := render.ParsePolicy("policy.yaml", []byte(`
apiVersion: katacontainers.io/v1alpha1
kind: RenderPolicy
kubernetes: "1.36"
via: dra
flavours:
- resource: example.com/h100
  deviceClass: gpu.vfio.katacontainers.io
  selectors:
  - device.attributes["vfio.katacontainers.io"].deviceID == "2330"
- resource: example.com/nic
  deviceClass: nic.vfio.katacontainers.io
alignment:
- resources: [example.com/h100, example.com/nic]
  matchAttribute: resource.kubernetes.io/pcieRoot
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := render.Render([]render.File{{Name: "train.yaml", Data: []byte(`apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  containers:
  - name: train
    resources:
      limits:
        example.com/h100: 1
        example.com/nic: 1
`)}}, policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(result.Files[0].Data))
	// Output:
	// apiVersion: resource.k8s.io/v1
	// kind: ResourceClaimTemplate
	// metadata:
	//   name: h100-1-nic-1-ba27272a66
	//   annotations:
	//     katacontainers.io/rendered: object
	// spec:
	//   spec:
	//     devices:
	//       requests:
	//       - name: h100
	//         exactly:
	//           deviceClassName: gpu.vfio.katacontainers.io
	//           selectors:
	//           - cel:
	//               expression: device.attributes["vfio.katacontainers.io"].deviceID == "2330"
	//       - name: nic
	//         exactly:
	//           deviceClassName: nic.vfio.katacontainers.io
	//       constraints:
	//       - requests: [h100, nic]
	//         matchAttribute: resource.kubernetes.io/pcieRoot
	// ---
	// apiVersion: v1
	// kind: Pod
	// metadata:
	//   name: train
	// spec:
	//   resourceClaims:
	//   - name: devices
	//     resourceClaimTemplateName: h100-1-nic-1-ba27272a66
	//   containers:
	//   - name: train
	//     resources:
	//       claims:
	//       - name: devices
	//         request: h100
	//       - name: devices
	//         request: nic
}
