// Image writes the container image of a program as an OCI archive, without a container engine.
//
// The image is made from scratch and holds two files, the program and the standard gRPC health
// probe, for every platform that was given:
//
//	image -name kata-device-plugin -tag dev -version v1 -revision 2f0eedb -o dist/kata-device-plugin.oci.tar \
//	    -program amd64=bin/linux-amd64/kata-device-plugin -program arm64=bin/linux-arm64/kata-device-plugin \
//	    -probe amd64=bin/linux-amd64/grpc_health_probe -probe arm64=bin/linux-arm64/grpc_health_probe
//
// The archive is an OCI image layout in a tar file. `ctr images import` and `skopeo copy
// oci-archive:...` read it. Its bytes depend on nothing but the files' contents, the flags and
// SOURCE_DATE_EPOCH (seconds since 1970, 0 where it is absent): the same commit and the same Go
// give the same digest on every machine. The digest is printed.
package main
