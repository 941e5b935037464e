//go:build !kubernetes134

// Empty on purpose: an assembler file lets manager.go declare functions without a body.
