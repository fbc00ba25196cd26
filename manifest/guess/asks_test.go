package guess

import (
	"strings"
	"testing"
)

// TestAsksWho: columns of forms that ask for somebody's name, id or code, in the words of the question.
func TestAsksWho(t *testing.T) {
	named := func(name string) *surveyed {
		return &surveyed{name: name, items: 2, filled: 2, cells: [][]string{{"kvamsdal"}, {"haugen"}}}
	}
	for name := range strings.SplitSeq(`What is your name?|Your name|Please enter your name|Enter your name|Your initials|Your ID|Your code|Enter your code|
		Which annotator are you?|Votre nom|Tu nombre|Il tuo nome|Dein Name|Ihr Name|Ditt navn|Seu nome|Uw naam|Adınız|Group member|Assigned|Signed|Zoom name|Teams|
		slack|Wie heißt du?|Wie heißen Sie?|Wie ist Ihr Name?|Comment vous appelez-vous ?|Quel est votre nom ?|¿Cómo te llamas?|¿Cuál es su nombre?|Come ti chiami?|
		Qual é o seu nome?|Hoe heet je?|Hva heter du?|Jak masz na imię?|Как вас зовут?|Ваше имя|你的名字|お名前|이름이 무엇입니까|Type your ID here|Provide your worker ID|
		Please write name|Name (yours)|Your e-mail|your_name|yourName|Enter initials|Who is answering|
		NetID|LDAP|SSO|Personnel No|Matric No|Matriculation number|uniqname|crsid|SONA ID|sona_id|badge|Badge number|SUNet ID|eppn|zID|employee no`, "|") {
		if c := named(strings.TrimSpace(name)); c.private() == "" {
			t.Errorf("%s is not about people", name)
		}
	}
	for name := range strings.SplitSeq(`Which emotion do you see?|What is your label?|How sad are you?|your_rating|Do you agree?|What does the meme show?|Wie traurig ist das Bild?|Code|
		Is your answer certain?|Quelle est votre réponse ?|Name of the meme|Your answer|Which label fits best?|zoom_level|signature_style|ton|team_spirit|net_effect|
		Enter the label|Type of meme|typed|design|assignment|personnel_issue|type_id|state_code|state_name|number_of_posts`, "|") {
		if c := named(strings.TrimSpace(name)); c.private() != "" {
			t.Errorf("%s: %s", name, c.private())
		}
	}
}
