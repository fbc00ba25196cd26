package endpoint

import (
	"fmt"
	"regexp"
	"strings"
)

// The marks by which known models set their thoughts apart: tags (Qwen, DeepSeek, GLM and others), Magistral's,
// Kimi's, and the channels of harmony (gpt-oss), where all but the channel "final" is thought.
const thoughtTags = `(?:[a-z]+:)?(?:think|thinking|thought|thoughts|reason|reasoning|reflection|analysis|scratchpad)`

var (
	thoughtEnds = regexp.MustCompile(`(?i)</` + thoughtTags + `>|\[/think\]|◁/think▷|` +
		`<\|channel\|>\s*final\s*(?:<\|constrain\|>[^<]*)?<\|message\|>`)
	thoughtBegins = regexp.MustCompile(`(?i)<` + thoughtTags + `>|\[think\]|◁think▷|<\|channel\|>`)
)

// Spoken is what a model says after its thoughts, which end at the last mark of an end: end, where it is not "", or a
// known one. An answer that ends within a thought has nothing that counts; why says so.
func Spoken(text, end string) (rest, why string) {
	const thinking = "it ends while the model still thinks"
	if end != "" {
		at := strings.LastIndex(text, end)
		if at < 0 {
			return "", thinking + fmt.Sprintf(": it has no %.40q", end)
		}
		text = text[at+len(end):]
	}
	if ends := thoughtEnds.FindAllStringIndex(text, -1); len(ends) > 0 {
		text = text[ends[len(ends)-1][1]:]
	}
	if thoughtBegins.MatchString(text) {
		return "", thinking
	}
	return text, ""
}
