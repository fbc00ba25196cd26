//go:build linux && !amd64

package main

var oldRenames, oldUnlinks []uintptr
