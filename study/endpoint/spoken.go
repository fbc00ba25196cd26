package endpoint

import (
	"fmt"
	"regexp"
	"strings"
)

// The marks by which known models set their thoughts apart: tags (Qwen, DeepSeek, GLM and others), Magistral's, Kimi's,
// Gemma's channel, MedGemma's, those of Command A and Apertus, and the channels of harmony (gpt-oss), where all but the
// channel "final" is thought.
const (
	thoughtWords = `(?:think|thinking|thought|thoughts|reason|reasoning|reflection|analysis|scratchpad)`
	thoughtTags  = `(?:[a-z]+:)?` + thoughtWords
	finalMark    = `(?:<\|start\|>assistant)?<\|channel\|>\s*final\s*(?:<\|constrain\|>[^<]*)?<\|message\|>`
	endMarks     = `</` + thoughtTags + `>|\[/think\]|◁/think▷|<channel\|>|<unused95>|` +
		`<\|end_(?:of_)?` + thoughtWords + `\|>|<\|` + thoughtWords + `_end\|>|<\|inner_suffix\|>`
	beginMarks = `<` + thoughtTags + `>|\[think\]|◁think▷|<\|channel>|<unused94>|` +
		`(?:<\|start\|>assistant)?<\|channel\|>|<\|(?:[a-z]+_)*` + thoughtWords + `(?:_[a-z]+)*\|>|<\|inner_prefix\|>`
)

// thoughtMarks finds the next mark: of the final channel, of an end, or of a beginning.
var thoughtMarks = regexp.MustCompile(`(?i)(` + finalMark + `)|(` + endMarks + `)|` + beginMarks)

// Spoken is what a model says outside its thoughts, without the marks of known models; nothing where it says nothing
// after the last of them. Where end is not "", all up to the last end is thought as well. An answer that ends within a
// thought has nothing that counts; why says so. What stands before a first end that has no beginning is thought:
// templates of prompts give the beginning. Between two ends it may be an answer, and counts.
func Spoken(text, end string) (rest, why string) {
	const thinking = "it ends while the model still thinks"
	if end != "" {
		at := strings.LastIndex(text, end)
		if at < 0 {
			return "", thinking + fmt.Sprintf(": it has no %.40q", end)
		}
		text = text[at+len(end):]
	}
	var said []string
	from, thinks, ended := 0, false, false // ended: the last mark was an end
	for _, m := range thoughtMarks.FindAllStringSubmatchIndex(text, -1) {
		final, ends := m[2] >= 0, m[4] >= 0
		words := text[from:m[0]]
		if !thinks && (ended || !ends && !final) {
			said = append(said, words)
		}
		from, ended, thinks = m[1], final || ends, !final && !ends
	}
	if thinks {
		return "", thinking
	}
	if strings.TrimSpace(text[from:]) == "" { // whatever it said before it thought again
		return "", ""
	}
	return strings.Join(append(said, text[from:]), "\n"), ""
}
