package redditemu

import (
	"fmt"
	"slices"
	"strings"
)

// setups and punchlines make the English captions: any two of one list differ by at
// least four words, so any two captions do, and only planted copies are near-duplicates
// under the rule of three words. A test holds that.
func setups() []string {
	return []string{
		"when the coffee machine finally works",
		"monday morning called and nobody answered",
		"my cat watching me do homework",
		"teacher says pencils down right now",
		"i opened the fridge for advice",
		"weather app promised sunshine all week",
		"grandma discovered video calls last sunday",
		"nobody told our dog about vacation",
		"trying to fold a fitted sheet",
		"they said breakfast was almost ready",
		"one sock survived another laundry day",
		"brought an umbrella for no reason",
		"studied until three in the night",
		"her kitten learned how doors open",
		"five minutes before the math test",
		"dad starts fixing things without instructions",
		"left my lunch on the bus",
		"snow closed every school except ours",
		"your printer smells fear and deadlines",
		"neighbors bought their son some drums",
		"there is cake in meeting room two",
		"forgot which pocket holds those keys",
		"sister borrowed my favorite winter jacket",
		"train arrives early for the first time",
		"somebody ate all the good cookies",
		"pigeons have taken over this balcony",
		"opening presents in front of relatives",
		"new alarm clock plays loud trumpet music",
		"gym membership turns one year old today",
		"goldfish staring back during long calls",
		"spelling the word rhythm under pressure",
		"hot soup meets impatient hungry people",
		"parallel parking while strangers watch closely",
		"garden tomatoes worth forty dollars each",
		"library book overdue since last spring",
		"group project where only i work",
	}
}

func punchlines() []string {
	return []string{
		"now it thinks we are friends",
		"that was my entire plan today",
		"and then the rain started again",
		"please send more tea and blankets",
		"still better than doing the dishes",
		"this is fine said absolutely everyone",
		"maybe tomorrow will be a pancake",
		"guess who has to clean up",
		"ten out of ten would nap",
		"science cannot explain such enormous confidence",
		"worth every single crumb on earth",
		"so i pretended to understand everything",
		"nothing went wrong for almost seconds",
		"he regrets no part of it",
		"we do not talk about lunch",
		"suddenly four hours later wide awake",
		"call me when pizza gets here",
		"instructions unclear built a boat instead",
		"at least my plants believe me",
		"winter jacket season begins next week",
		"asking for an old friend obviously",
		"mission failed successfully with extra cheese",
		"see you all in september then",
		"calendar says friday but feels wrong",
		"both of us need longer holidays",
		"turns out gravity works just great",
		"everybody clapped except the grumpy parrot",
		"his face when vegetables show up",
		"level ninety wizard of procrastination unlocked",
		"bold strategy let us watch quietly",
		"never trust anything without whipped cream",
		"loading brain please wait another minute",
		"breaking news local person stays home",
		"can confirm it tastes like purple",
		"who put glitter inside this envelope",
		"two thumbs up from tired parents",
	}
}

// Captions returns how many different English captions there are.
func Captions() int { return len(setups()) * len(punchlines()) }

// Caption returns English caption i, counted round: 8 to 14 words, a line break
// between its two halves. Neighbours differ in both halves.
func Caption(i int) string {
	a, b := setups(), punchlines()
	n := len(a) * len(b)
	i = (i%n + n) % n
	row := i / len(a)
	return a[i%len(a)] + "\n" + b[(i+row)%len(b)]
}

// Languages lists the languages besides English that Draw has captions in.
func Languages() []string { return []string{"de", "es", "fr", "it", "pt", "ru"} }

// captionIn picks a caption by seed.
func captionIn(language string, seed uint64) (string, error) {
	if language == "" || language == "en" {
		return Caption(int(Hash64("caption", fmt.Sprint(seed)) % uint64(Captions()))), nil
	}
	if language == "salad" {
		return salad(seed), nil
	}
	parts, ok := foreign()[language]
	if !ok || !slices.Contains(Languages(), language) {
		return "", fmt.Errorf("no captions in language %q; there are en, salad, %s", language, strings.Join(Languages(), ", "))
	}
	h := Hash64("caption", language, fmt.Sprint(seed))
	half := uint64(len(parts) / 2)
	return parts[h%half] + "\n" + parts[half+h/half%half], nil
}

// salad is text that an engine can read letter by letter and that no dictionary holds.
func salad(seed uint64) string {
	var words []string
	for i := range 8 {
		h := Hash64("salad", fmt.Sprint(seed), fmt.Sprint(i))
		word := ""
		for range 6 {
			word += string("bcdfghkmnpqrtvwxz"[h%17])
			h /= 17
		}
		words = append(words, word)
	}
	return strings.Join(words[:4], " ") + "\n" + strings.Join(words[4:], " ")
}

// foreign holds, for each language, upper texts and then as many lower ones.
func foreign() map[string][]string {
	return map[string][]string{
		"de": {
			"wenn der kaffee schon wieder leer ist", "meine katze beobachtet mich beim lernen",
			"das wetter war gestern viel schöner", "niemand hat die hausaufgaben verstanden",
			"der zug kommt heute etwas später", "oma schickt wieder zu viele kuchen",
			"und jetzt brauche ich dringend urlaub", "trotzdem gehen wir nachher schwimmen",
			"morgen wird bestimmt alles besser", "aber keiner möchte das geschirr spülen",
			"deshalb bleibe ich einfach im bett", "die nachbarn wissen auch nicht warum",
		},
		"es": {
			"cuando el café se termina temprano", "mi gato mira cómo hago la tarea",
			"nadie quiere lavar los platos hoy", "la abuela preparó demasiada comida otra vez",
			"llueve justo después de lavar el coche", "el profesor dice que es muy fácil",
			"y todavía faltan cuatro días más", "pero nosotros seguimos muy contentos",
			"mañana empiezo la dieta de verdad", "ahora necesito unas vacaciones largas",
			"por eso me quedo en la cama", "así que pedimos una pizza enorme",
		},
		"fr": {
			"quand le café est déjà froid", "mon chat regarde mes devoirs avec mépris",
			"il pleut encore pendant les vacances", "la grand-mère a fait trop de gâteaux",
			"le train arrive enfin à l'heure", "personne ne veut faire la vaisselle",
			"et maintenant je veux juste dormir", "mais nous restons toujours très calmes",
			"demain sera peut-être une bonne journée", "alors je mange encore du fromage",
			"c'est pourquoi je reste chez moi", "les voisins ne comprennent rien non plus",
		},
		"it": {
			"quando il caffè finisce troppo presto", "il mio gatto guarda i compiti",
			"oggi nessuno vuole lavare i piatti", "la nonna ha cucinato per venti persone",
			"il treno parte sempre in ritardo", "piove appena esco con gli amici",
			"e adesso vorrei soltanto dormire", "però domani andiamo tutti al mare",
			"quindi mangiamo ancora un gelato", "anche i vicini sono molto stanchi",
			"perciò resto nel letto fino a tardi", "meglio ridere che studiare matematica",
		},
		"pt": {
			"quando o café acaba muito cedo", "meu gato olha a lição de casa",
			"ninguém quer lavar a louça hoje", "a avó fez bolo demais outra vez",
			"começou a chover no meu feriado", "o professor disse que era fácil",
			"e agora eu só quero dormir", "mas amanhã vamos todos para a praia",
			"então comemos mais um pedaço", "os vizinhos também não sabem por quê",
			"por isso eu fico na minha cama", "ainda faltam três dias para sexta",
		},
		"ru": {
			"когда кофе опять закончился утром", "мой кот смотрит на домашнее задание",
			"сегодня снова идёт сильный дождь", "бабушка испекла слишком много пирогов",
			"поезд впервые приехал вовремя", "никто не хочет мыть посуду",
			"теперь мне срочно нужен отпуск", "но завтра мы все поедем на море",
			"поэтому я остаюсь дома в кровати", "соседи тоже ничего не понимают",
			"зато у нас есть большой торт", "наверное скоро наступит весна",
		},
	}
}
