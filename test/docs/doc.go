// Package docs holds the commands of the documents against kubectl's own, and what they say of the demo
// against the demo. It is a module of its own, since nothing else here is built with kubectl.
package docs
