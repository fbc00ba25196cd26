package manifest

import (
	"regexp"
	"slices"
	"strings"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A RowKind is what dumps and exports call rows of one kind.
type RowKind string

// The kinds, by their names without marks on letters.
const (
	Comments RowKind = `comment comments t1 kommentar kommentare commentaire commentaires comentario comentarios commento commenti
		opmerking komentarz komentarze komentar yorum kommentti kommentarer kommentaren hozzaszolas
		комментарии комментарий коментар коммент комменты cmt cmts commenter
		σχολιο تعليق תגובה टिप्पणी コメント 评论 評論 留言 댓글`
	Replies RowKind = `reply replies antwort antworten reponse reponses respuesta respuestas resposta respostas risposta risposte
		reactie reacties odpowiedz odpowiedzi yanit svar vastaus ответ رد 回复 回覆 返信 답글`
	Posts RowKind = `post posts submission submissions t3 thread threads beitrag beitrage publication publications
		publicacion publicaciones entrada publicacao postagem pubblicazione bericht wpis gonderi inlagg indlaeg innlegg julkaisu
		op пост публикация
		منشور 帖子 主题 投稿 게시물`
	SurePosts RowKind = "op post posts submission submissions t3"
	// TypesOfPosts can stand beside comment, and are labels without it.
	TypesOfPosts RowKind = "gallery image link poll self text video"
	// One letter says a kind only in a column of kinds, and where all its values are such letters.
	LetterOfComments RowKind = "c"
	LettersOfPosts   RowKind = "p s"
)

// dumpForm is the name of a file of a dump by months: of comments, or of submissions.
var dumpForm = regexp.MustCompile(`^r([cs])_\d{4}-\d\d`)

// maxKindWords is how many words the name of a kind has at most: top-level comment.
const maxKindWords = 3

// Has reports whether a text names the kind: by a word of it, where another does not say that it is a part of
// something, such as a title.
func (k RowKind) Has(text string) bool {
	kind := value.Fold(value.WithoutMarks(text))
	if k.Is(kind) {
		return true
	}
	if dump := dumpForm.FindStringSubmatch(kind); dump != nil {
		return k.Is(map[string]string{"c": "comment", "s": "submission"}[dump[1]])
	}
	words := strings.FieldsFunc(kind, func(r rune) bool { return r == ' ' || r == '_' || r == '-' })
	return len(words) <= maxKindWords && slices.ContainsFunc(words, k.Is)
}

// Is reports whether a text is a name of the kind and nothing else.
func (k RowKind) Is(text string) bool {
	return text != "" && slices.Contains(strings.Fields(string(k)), value.Fold(text))
}

// OfComment reports whether a text says that something is a comment or a reply.
func OfComment(text string) bool { return Comments.Has(text) || Replies.Has(text) }

// A CommentMark is how a column says by its name that its rows are about comments, or are not.
type CommentMark int

// The marks.
const (
	NoMark      CommentMark = iota
	MarkKind                // its values are kinds of rows
	MarkYes                 // yes says that a row is about a comment
	MarkNo                  // no does
	MarkAddress             // it has the row's own address or fullname
	MarkID                  // it names the comment that a row is about, or the utterance
)

// marked are the names of columns by what they say, with _ between the words.
var marked = [...][]string{
	MarkKind: {"kind", "type", "typ", "tipo", "soort", "rodzaj", "thing"},
	MarkYes: {"is_comment", "is_reply", "comment", "kommentar", "commentaire", "comentario", "commento",
		"is_kommentar"},
	MarkNo: {"is_post", "is_submission", "is_thread", "is_top_level", "top_level", "is_toplevel", "toplevel",
		"is_root"},
	// url and link are not among them: a post can lead to a comment.
	MarkAddress: {"comment_permalink", "full_link", "fullname", "name", "permalink", "post_permalink", "post_url"},
	MarkID: {"comment_fullname", "comment_id", "comment_link", "comment_name", "comment_uri", "comment_url",
		"commentid", "utt_id", "uttid", "utterance_id", "utteranceid", "turn_id", "turnid"},
}

// markNames are all such names.
func markNames() []string { return slices.Concat(marked[:]...) }

// MarkOf gives the mark of a column's name. One of kinds may be the last word of several.
func MarkOf(name string) CommentMark {
	name = FoldColumn(name)
	last := name[strings.LastIndexByte(name, '_')+1:]
	for mark, names := range marked {
		isLast := slices.Contains(names, last) || slices.Contains(names, strings.TrimSuffix(last, "s"))
		if slices.Contains(names, name) || CommentMark(mark) == MarkKind && isLast {
			return CommentMark(mark)
		}
	}
	return NoMark
}

// PostForm gives the post id that a text may be, and whether it can be nothing else; strong without an id is a comment.
func PostForm(text string) (id string, strong bool) {
	text = value.FoldASCII(strings.TrimSpace(text))
	if strings.HasPrefix(text, "t1_") {
		return "", PostID(text[3:]).Valid()
	}
	strong = strings.HasPrefix(text, "t3_") || strings.Contains(text, "/comments/") || strings.Contains(text,
		"redd.it/") ||
		strings.Contains(text, "/gallery/")
	if !strong && !PostID(text).Valid() {
		return "", false
	}
	found, err := ParseCellID(text)
	if p, ok := table.AsProblem(err); ok {
		return "", strings.Contains(p.Message, "of a comment")
	}
	return string(found), strong
}
