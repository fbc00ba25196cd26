package picture

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"image"
)

// Animated reports whether an image file has several pictures: a GIF of more than one, or a PNG that says so (acTL,
// which stands before the first picture).
func Animated(body []byte, format string) bool {
	switch format {
	case "gif":
		return len(GIFPictures(body)) > 2 // each stands there twice
	case "png":
		before, _, _ := bytes.Cut(body, []byte("IDAT"))
		return bytes.Contains(before, []byte("acTL"))
	}
	return false
}

// ShownDigest returns the SHA-256, in hex, of all that an image file shows: the PixelDigest of its upright picture or,
// of an animation, whose first picture is often a title or black, the digest of the file, without metadata (Strip).
func ShownDigest(stripped []byte, format string, upright image.Image) string {
	if Animated(stripped, format) {
		sum := sha256.Sum256(stripped)
		return hex.EncodeToString(sum[:])
	}
	return PixelDigest(upright)
}
