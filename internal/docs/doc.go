// Package docs reads the documents of the repository as a program has to: which commands they tell a
// reader to type, what they say will be printed, and where they point. Tests hold that against what is so.
package docs
