// Program is what the images of the tests hold: as small as a real one can be.
package main

func main() {}
