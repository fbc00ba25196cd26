package ocr

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
)

// An Engine names what reads the images.
type Engine struct {
	Tesseract   string `json:"tesseract"`    // library version
	Leptonica   string `json:"leptonica"`    // library version
	Gosseract   string `json:"gosseract"`    // module version
	Model       string `json:"model"`        // language model: eng
	ModelSHA256 string `json:"model_sha256"` // hex digest of the traineddata file
	// Parameters are the worker's own settings in its hello; in Pool.Engine every
	// constant of the passes follows them.
	Parameters string `json:"parameters"`
}

// Fingerprint is the hex SHA-256 of everything that decides what an image reads as:
// the engine's versions, its model, all parameters, and the Go version, whose image
// decoders set the pixels that thresholds sit on.
func (e Engine) Fingerprint() string {
	h := sha256.New()
	// A struct of strings always encodes.
	body, _ := json.Marshal(struct {
		Engine
		Go string `json:"go"`
	}{e, runtime.Version()})
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
