package picture

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"testing"

	"rehydrate/internal/testkit"
)

// TestAsLibwebp compares every pixel with what libwebp reads from the same files (the SHA-256 of red, green, blue and
// alpha as Pillow gives them), of odd and even sides, with and without alpha.
func TestAsLibwebp(t *testing.T) {
	for name, want := range map[string]string{
		"odd":   "c3b62fafca7f3dee27f01cdeae340f5ba2fa77b9ff06e8be65195a0a86bad21f",
		"even":  "e415a8103858a9581cae269a9c6293202798781f96fa51aa2002b1f70072e57d",
		"alpha": "ee9e082aba830d7fecc3a3beeadde18be3aa95dfc7c035c45adb598888b93468",
		"white": "5f4ecdb7b71c3e403983fe405cddcdc2f2576b655fdb3e80d94a6f7c32e58bc2",
		"black": "9503245a0161a939de15c2414db2d336e761822fa6cff8136e4148f58f1f782e",
	} {
		body, err := os.ReadFile(filepath.Join("testdata", name+".webp"))
		testkit.OK(t, err)
		decoded, err := Decode(body)
		testkit.OK(t, err)
		img, pixels := AsLibwebp(decoded, body), bytes.Buffer{}
		b := img.Bounds()
		for i := range b.Dx() * b.Dy() {
			c := img.At(i%b.Dx(), i/b.Dx()).(color.NRGBA)
			pixels.Write([]byte{c.R, c.G, c.B, c.A})
		}
		sum := sha256.Sum256(pixels.Bytes())
		testkit.Same(t, name, want, hex.EncodeToString(sum[:]))
		testkit.Same(t, name+", outside", color.Color(color.NRGBA{}), img.At(b.Max.X, 0))
		testkit.Same(t, name+" has the digest of Go's colours", true, PixelDigest(img) != PixelDigest(decoded))
	}
	photo := image.NewYCbCr(image.Rect(0, 0, 2, 2), image.YCbCrSubsampleRatio420)
	testkit.Same(t, "a JPEG is as it is", true, AsLibwebp(photo, []byte(MagicJPEG+"\xe0")) == image.Image(photo))
	lossless, err := Decode([]byte(webp1x1))
	testkit.OK(t, err)
	testkit.Same(t, "a lossless WebP is as it is", true, AsLibwebp(lossless, []byte(webp1x1)) == lossless)
}
