// Image writes the container image of a program as an OCI archive, without a container engine.
//
// The image is made from scratch and holds the program and the standard gRPC health probe (programs that
// nobody asks for their health are without), and their licences in /licenses, for every platform that was
// given:
//
//	image -name kata-device-plugin -tag dev -version v1 -revision 2f0eedb -o dist/kata-device-plugin.oci.tar \
//	    -program amd64=bin/linux-amd64/kata-device-plugin -program arm64=bin/linux-arm64/kata-device-plugin \
//	    -probe amd64=bin/linux-amd64/grpc_health_probe -probe arm64=bin/linux-arm64/grpc_health_probe \
//	    -repository . -modules "$(go env GOMODCACHE)" -goroot "$(go env GOROOT)"
//
// The archive is an OCI image layout in a tar file, which `ctr images import` reads. Beside the image it
// holds an SPDX document for each platform, as an artifact that refers to the platform's image. With
// -merge it packs the images of several such archives into one:
//
//	image -merge -o dist/images.oci.tar dist/kata-device-plugin.oci.tar dist/nic-device-plugin.oci.tar
//
// The archive's bytes depend on nothing but the files' contents, the flags and
// SOURCE_DATE_EPOCH (seconds since 1970, 0 where it is absent): the same commit and the same Go
// give the same digest on every machine. The digest is printed.
package main
