// Empty on purpose: an assembler file lets manager.go declare a function without a body.
