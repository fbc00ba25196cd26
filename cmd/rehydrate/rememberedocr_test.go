package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr"
)

// rememberedOCR is a script that is the real ocr program, but as a worker has each picture read only once: all pages
// show the same few pictures, and Tesseract reads a picture always alike.
func rememberedOCR(program string) (script string, err error) {
	folder := filepath.Join(filepath.Dir(program), "remembered")
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	self, err := exec.LookPath("ocr-remembered")
	return fmt.Sprintf("#!/bin/sh\nexec %q %q %q \"$@\"\n", self, program, folder), err
}

// serveRemembered is the main function of ocr-remembered: PROGRAM FOLDER [ARG...].
func serveRemembered() {
	program, folder, args := os.Args[1], os.Args[2], os.Args[3:]
	var err error
	if slices.Equal(args, []string{"worker"}) {
		err = remember(program, folder)
	} else {
		err = syscall.Exec(program, append([]string{program}, args...), os.Environ())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// remember serves a supervisor with the words that a worker of the program read, or reads now. They lie in the folder,
// under the digest of what was asked.
func remember(program, folder string) error {
	cmd := exec.Command(program, "worker")
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		return err
	}
	answers := json.NewDecoder(bufio.NewReader(out))
	var hello ocr.Hello
	if err := answers.Decode(&hello); err != nil {
		return fmt.Errorf("the hello of the worker: %w", err)
	}
	err := ocr.Serve(os.Stdin, os.Stdout, hello.Engine, func(g *image.Gray, m ocr.Mode) (words []word.Raw, err error) {
		request, err := json.Marshal(struct {
			Mode  ocr.Mode
			Sizes []image.Point
		}{m, []image.Point{g.Rect.Size()}})
		if err != nil {
			return nil, err
		}
		request = append(append(request, '\n'), g.Pix...)
		name := filepath.Join(folder, fmt.Sprintf("%x", sha256.Sum256(request)))
		if known, err := os.ReadFile(name); err == nil {
			return words, json.Unmarshal(known, &words)
		}
		if words, err = askWorker(in, answers, request); err != nil {
			return nil, err
		}
		return words, keepWords(name, words)
	})
	return errors.Join(err, in.Close(), cmd.Wait())
}

// askWorker has a worker answer a request for one picture.
func askWorker(in io.Writer, answers *json.Decoder, request []byte) ([]word.Raw, error) {
	if _, err := in.Write(request); err != nil {
		return nil, err
	}
	var answer struct {
		Words [][]word.Raw
		Error string
	}
	if err := answers.Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" || len(answer.Words) != 1 {
		return nil, fmt.Errorf("the worker answered with %d pictures: %s", len(answer.Words), answer.Error)
	}
	return answer.Words[0], nil
}

// keepWords writes what a picture reads as in one step: others may look for it.
func keepWords(name string, words []word.Raw) error {
	body, err := json.Marshal(words)
	if err != nil {
		return err
	}
	temp := fmt.Sprintf("%s.%d", name, os.Getpid())
	return errors.Join(os.WriteFile(temp, body, 0o600), os.Rename(temp, name))
}
