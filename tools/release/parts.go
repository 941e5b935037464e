package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// manifests takes the rendered manifests, with the release's images.
func (r release) manifests() error {
	files, err := filepath.Glob(filepath.Join(r.Repository, "deploy", "*", "daemonset.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		content, err := os.ReadFile(filepath.Join(r.In, name+".yaml"))
		if err != nil {
			return err
		}
		image := regexp.MustCompile(`(?m)^(\s*(?:- )?image: ` + regexp.QuoteMeta(name) + `):dev$`)
		if !image.Match(content) {
			return fmt.Errorf("%s.yaml has no image %s:dev to put the version at", name, name)
		}
		if err := r.write(name+".yaml", image.ReplaceAll(content, []byte("${1}:"+r.Version))); err != nil {
			return err
		}
	}
	return nil
}

// krew fills in the entry in an index of krew.
func (r release) krew() error {
	if r.Base == "" {
		return nil
	}
	template, err := os.ReadFile(filepath.Join(r.Repository, "tools", "krew", "device.yaml"))
	if err != nil {
		return err
	}
	var missing error // checksums of archives that are not there
	text := regexp.MustCompile(`SHA256_[A-Z0-9]+_[A-Z0-9]+`).ReplaceAllFunc(template, func(mark []byte) []byte {
		system := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(string(mark), "SHA256_"), "_", "-"))
		sum, err := checksum(filepath.Join(r.Out, archiveName(person, system)))
		missing = errors.Join(missing, err)
		return []byte(sum)
	})
	if missing != nil {
		return missing
	}
	// What is above it tells about the template.
	text = text[max(0, bytes.Index(text, []byte("apiVersion:"))):]
	text = bytes.ReplaceAll(text, []byte("version: VERSION"), []byte("version: "+r.Version))
	text = bytes.ReplaceAll(text, []byte("BASE"), []byte(strings.TrimSuffix(r.Base, "/")))
	return r.write("krew-device.yaml", text)
}

// checksums lists all files as sha256sum does.
func (r release) checksums() error {
	files, err := os.ReadDir(r.Out)
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, file := range files {
		sum, err := checksum(filepath.Join(r.Out, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, file.Name())
	}
	return r.write("SHA256SUMS", list.Bytes())
}

func checksum(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
