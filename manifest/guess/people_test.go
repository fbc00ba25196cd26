package guess

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// english is a dictionary for tests.
func english(word string) bool {
	return slices.Contains(strings.Fields(`and april fear first humor inform may or other otter perpetrator second self victim
		anger ask auto by bullying class done funny mark covid dank figurative hate hateful image irony joy label language memes metaphor
		box coords length month mood rating ratio status title moderator mods negative neutral non none not offensive positive related sadness sarcasm speech thing topic very vote watchful way women`), word)
}

// TestColumnsOfPeople: which columns are left out by their names. The values are words that would do as labels.
func TestColumnsOfPeople(t *testing.T) {
	column := func(name string, values ...string) *surveyed {
		c := &surveyed{name: name}
		for _, v := range values {
			c.items++
			c.filled++
			c.cells = append(c.cells, []string{v})
			if strings.Trim(v, "0123456789.") == "" {
				c.forms[formNumber]++
			}
		}
		return c
	}
	for _, name := range strings.Fields(`author user op submitter account handle nick created_by posted_by approved_by banned_by removed_by mod moderator owner
		uploader screen_name commenter op_name deleted_by reported_by mentions posted-by PostedBy postedBy POSTED_BY postedby createdby OPName opName op-id
		user_name userName UserID userid username reddit_user_name redditUsername users user_karma user.type author_flair authorFlair author_fullname authors
		post_author parent_author_id authorname annotator annotator_1 annotator1 Annotator-2 annotators annotator_id label_annotator_2 reviewer reviewer_2
		reviewers reviewerName moderators modname mod_id approved_mod uploader_url owner_id channel_owner twitter_handle twitter_screen_name screenName
		screenname nickname nickName accountName account_id removed_by_name posted_by_link submitted_by by by_user submitter_name commentor rater rater_1
		labeller worker_id workerid participant_id respondent redditor poster poster_id email phone uid ip ip_address name full_name first_name
		display_name login annotated_by reviewed_by labelled_by rated_by approvedBy
		judge judge_id creator creator_id contributor editor curator evaluator evaluator_id expert_id expert_name assessor adjudicator grader assignee
		assigned_to turker mturk_id M-Turk-ID crowdworker student_name surname lastname firstname family_name given_name givenName e-mail E-Mail e_mail mail
		gmail github twitter orcid sender profile_name coder_A coder_b ann_id annot1 rater_gender rater_age session_id Prolific_PID PROLIFIC_PID
		judge_first_name workerCountry subject_id full_name_2 cc speaker voter dob ＵＳＥＲ
		anna Bert label_anna clara_label person people patients who who_labeled acct kontakt E-Mail-Adresse RA1 AssignmentId alias moderador correcteur responsable
		Bearbeiter bearbeiterin Benutzername benutzer_id Nutzerkennung Nachname Vorname Autoren Kommentarautor annotiert_von geprüft_von Prüfer Teilnehmer
		auteur auteurs nom_auteur utilisateur nom_d_utilisateur prénom évaluateur courriel annoté_par autor autores usuario nombre_usuario apellido apellidos
		etiquetador anotado_por correo_electronico usuário avaliador sobrenome utente nome_utente cognome annotatore valutatori gebruiker gebruikersnaam
		beoordelaar achternaam beoordeeld_door użytkownik nazwisko imię oceniający kullanıcı KULLANICI_ADI soyadı yazar användare brugernavn
		thread_starter threadStarter topic_starter gilder awarder lurker matrikelnummer Matrikel-Nr matrikel_id Initialen iniciales initiales VP VP_Code
		vp_nr VPNr Probandencode arvioija luokittelija granskare checker fact-checker auditor proofreader research_assistant ResearchAssistant
		student_assistant hiwi RA intern postdoc PhD professor prof supervisor Betreuer doktorand therapist Therapeutin terapeuta psykolog psychiatrist
		Psychiater psychiatre counselor caregiver physician Arzt médecin patient client client_code case_id participant_code subject_code boss colleague
		Kollege pupil Schüler élève alumno estudiante docente Lehrer teacher mother father parent wife boyfriend witness victim operator speaker
		snapchat insta Instagram_handle bluesky bsky threema wechat qq vk youtube twitch_name reddit_user steam_id telegram_id
		approver approver_id case_manager midwife Hausarzt enfermera infirmière panelist second_coach crossposter subj_id human_1 staff_id deltagerkode
		Schülercode osallistujan_koodi proefpersoon Försöksperson sujeto_id numero_matricula pseudonym anon_id Namenszeichen kontonummer ipv4 user_agent
		dni curp nif Steuernummer Personalausweis Geburtsdatum adresse team_member lab_member messenger
		ResponseId LocationLatitude LocationLongitude lat lon latitude GPS geo pid sid crowd resp bonus completion_code değerlendiren token
		ExternalReference RecipientEmail consent coder_LC rater-KM judgeTJ LabelerAB_label RATER_KM sarahs_label
		терапевт инициалы 治疗师 被试 臨床心理士 치료사
		coder_birth_year rater_salary rater_year_of_birth worker_postal_code annotator_citizenship labeler_pronouns
		coder_phq9 rater_suicide_attempts rater_employment_status worker_native_language coder_years_of_experience rater_1_income
		coder_A_age_group postal_code postalCode Postleitzahl
		code_postal birth_year birthyear year_of_birth BirthYear yob dob_year birthplace place_of_birth année_de_naissance
		anno_di_nascita año_de_nacimiento ano_de_nascimento rok_urodzenia geboortejaar födelseår syntymävuosi doğum_yılı
		автор имя имя_пользователя Фамилия разметчик_1 الكاتب المستخدم اسم_المستخدم 用户名 作者 姓名 标注员 標註者1 ユーザー名 評価者 投稿者ID 사용자 작성자
		이름 उपयोगकर्ता लेखक नाम συγγραφέας משתמש ผู้ใช้`) {
		if c := column(name, "alice", "bob"); c.private() == "" {
			t.Errorf("%s is not about people", name)
		}
	}
	for _, name := range strings.Fields("previous_visits ban_note mod_note mod_notes mod_note_label mod_reason_by mod_reports user_reports can_mod_post") {
		if c := column(name, "x"); c.private() != "it tells of the account that collected the posts" {
			t.Errorf("%s: %q", name, c.private())
		}
	}
	for _, name := range strings.Fields(`label labels class category gold_label figurative figurative_language severity related_content modality context model
		model_name movement standby stand_by sort_by mode moderate moderation moderation_status moderator_action mood modifier module option opinion operation
		op_ed open opposed topic top stop account_type accountability accounting owner_type ownership handled handling nickel authority authoritarian
		authorship authorized annotation annotation_type review review_type reviewed reviewer1_label annotator_agreement 2_way_label c_2_way_label hobby
		baby nearby lobby removed_by_category removed_by_filter post_hint post_type subreddit_type link_flair_text platform source sentiment emotion stance
		target target_group hate offensive sarcasm humor irony toxicity usage useful used use_case is_spam quality political_party poster_type language lang
		country team_name char_name event_name dataset_name topic_name label_name split_name file_name domain_type image_type template meme_type
		ip_right flag email_type phone_type coder_type work workers_rights rate rating ratings rated participation response respond byline bypass by_product
		identity grid hybrid void paid valid aid covid mentions_suicide suicide_mention self_mention mentioned
		coder_AVG rater_IAA expert_label judge_label judgement judgment judged creative creation evaluation assessment assessed grade graded contribution editorial edited
		session device subject persona character profile target_gender gender age education country_name mentions_religion mentions_country
		e_label on_par donor factor actor_type agreement consensus vote votes tagged tag tags turkish expertise maker_faire mode modo
		Stimmung Gefühl Thema Sprache Kategorie Autobahn émotion étiquette humeur langue sujet thème sentiment catégorie emoción etiqueta sentimiento tono
		idioma autorizado autoestima categoria humor ironia ódio tema emozione lingua gevoel onderwerp taal emocja temat język kategoria duygu konu dil
		diagnosis medication pronouns phq9 suicide_attempts salary citizenship degree_of_hate year birth experience
		children coder_time worker_group
		therapy checkpoint fact_check supervision clientele professional study_case use_case parental maternal brotherhood snap_judgment steamy_score
		subjective human_label human human_machine street_art street_scene handling matrix channel staffing official office manageable
		youtube_score twitter_sentiment platform_type initial_label code label_code language_code marker subject_line number_of_posts Klient_Server_Anteil
		настроение тема время источник язык категория 情感 标签 主题 类别 感情 カテゴリ 감정 주제 المشاعر الموضوع भावना विषय`) {
		if c := column(name, "alice", "bob"); c.private() != "" {
			t.Errorf("%s: %s", name, c.private())
		}
	}
	for _, c := range []struct {
		column *surveyed
		want   bool
	}{
		{column("num_annotators", "2", "3"), false}, {column("Matriculation number", "3021471"), true},
		{column("student_number", "3021471"), true}, {column("matriculation", "3021471", "3021472"), true},
		{column("matriculation", "yes", "no"), false}, {column("mentions", "2", "3"), false},
		{column("user_count", "2"), false}, {column("is_mod", "0", "1"), false},
		{column("person", "0", "1"), false}, {column("person", "Ann", "Bob"), true},
		{column("is_mod", "True", "False"), false}, {column("throwaway_account", "yes", "no"), false},
		{column("owner", "2", "3"), true},
		{column("insta", "0", "1"), false}, {column("insta", "anna", "bert"), true}, {column("client", "yes", "no"),
			false},
		{column("victim", "ja", "nein"), false}, {column("operator", "0", "1"), true},
		{column("annotator", "0", "1"), true}, {column("author_premium", "true"), true}, {column("uid", "7"), true},
		{column("saved", "false"), true}, {column("saved", "12", "7"), false}, {column("likes", "true", "false"), true},
		{column("likes", "1204"), false},
		{column("hidden", "meaning", "none"), false}, {column("domain", "i.redd.it", "self.somebody"), true},
		{column("domain", "i.redd.it", "imgur.com"), false},
	} {
		if got := c.column.private() != ""; got != c.want {
			t.Errorf("%s with %v: private %v, want %v", c.column.name, c.column.cells, got, c.want)
		}
	}
}

// TestInitLeavesGiversOut: beside a column of people who were asked, what tells of them is left out and said.
func TestInitLeavesGiversOut(t *testing.T) {
	for _, test := range []struct {
		name   string // of the column beside
		column string
		values string
		left   bool
	}{
		{"worker_id", "Age", "20 31", true}, {"Participant id", "Country of birth", "Poland Chile",
			true}, {"_worker_id", "_city", "Gera Bonn", true},
		{"Participant id", "Ethnicity simplified", "White Black", true}, {"Participant id", "Student status",
			"Yes No", true},
		{"Participant id", "Employment status", "Other Part-Time", true}, {"Participant id", "Nationality",
			"Poland Chile", true},
		{"IPAddress", "Completion code", "C1XY1 C1XY2", true}, {"ipaddr", "seed", "12345 12388", true}, {"WorkerId",
			"Answer.gender", "female male", true},
		{"WorkerId", "Sex", "Male Female", true}, {"annotator", "zip", "99817 10115", true},
		{"Participant id", "Country of residence", "Norway Chile", true},
		{"Participant id", "Language", "French Dutch", true},
		{"Participant id", "First language", "French Dutch", true},
		{"Participant id", "Fluent languages", "French Dutch", true},
		{"Participant id", "Total approvals", "100 200", true},
		{"Participant id", "Started at", "2024-01-01T10:00:00Z 2024-01-01T10:00:01Z", true},
		{"WorkerId", "Answer.native_language", "French Dutch", true}, {"WorkerId", "Answer.state", "Ohio Utah", true},
		{"AssignmentId", "Answer.gender", "f f", true}, {"WorkerId", "emotional_state", "calm tense", false},
		{"Wie heißt du?", "Dein Alter", "20 31", true},
		{"Your name", "Geschlecht", "m w", true},
		{"worker_id", "salary", "20000 31000", true}, {"worker_id", "citizenship", "german french", true},
		{"worker_id", "pronouns", "she they", true}, {"worker_id", "age_group", "young old", true},
		{"worker_id", "years_old", "20 31", true}, {"worker_id", "years_of_experience", "2 5", true},
		{"worker_id", "height_cm", "170 182", true}, {"worker_id", "weight_kg", "70 82", true},
		{"worker_id", "semester", "2 5", true}, {"worker_id", "Jahrgang", "1980 1991", true},
		{"worker_id", "Staatsbürgerschaft", "deutsch polnisch", true}, {"worker_id", "idade", "20 31", true},
		{"worker_id", "salaire", "20000 31000", true}, {"worker_id", "ciudadanía", "chilena peruana", true},
		{"worker_id", "birth", "1980 1991", true}, {"worker_id", "país de nacimiento", "chile peru", true},
		{"worker_id", "income_bracket", "high low", true},
		{"worker_id", "year", "2019 2020", false}, {"worker_id", "image_height", "170 182", false},
		{"worker_id", "weight", "1.5 2.5", false}, {"worker_id", "degree_of_hate", "high low", false},
		{"worker_id", "religion", "0 1", false}, {"worker_id", "race", "yes no", false}, {"worker_id", "mood_level",
			"high low", false},
		{"author", "religion", "none christian", false}, {"x", "gender", "female male", false}, {"x", "age", "20 31",
			false},
	} {
		in, values := "id,"+test.name+","+test.column+",mood\n", strings.Fields(test.values)
		for i := range 12 {
			in += fmt.Sprintf("1n6oi%d,%d,%s,%s\n", i, 300+i%3, values[i%2], []string{"joy", "anger"}[i/2%2])
		}
		d, err := initFiles(t, Options{Options: manifest.Options{Known: english}}, file(t, "a.csv", in))
		if err != nil {
			t.Fatal(err)
		}
		left := !strings.Contains(string(d.Settings), `= "`+test.column+`"`) &&
			!strings.Contains(string(d.Settings), `title = "`+test.column)
		if said := strings.Contains(strings.Join(d.Warnings, "\n"),
			`column "`+test.column+`" may`); left != test.left || said != test.left {
			t.Errorf("%s beside %s: left out %v, %v; the columns are %v", test.column, test.name, left, d.Warnings,
				d.Example[0])
		}
	}
}

// TestInitAsksAboutGivers: what can be told of the people who were asked, or of what an image shows, stays beside their
// column, and a line names it. Without such a column there is no line.
func TestInitAsksAboutGivers(t *testing.T) {
	for _, test := range []struct{ column, values string }{
		{"diagnosis", "none bipolar"}, {"Diagnoses", "none bipolar"}, {"medication", "yes no"}, {"therapy", "0 1"},
		{"suicide_attempts", "0 1"}, {"number of suicide attempts", "0 1"}, {"PHQ-9", "12 17"}, {"phq9_score", "12 17"},
		{"gad7", "4 9"}, {"BDI-II", "12 17"}, {"num_children", "0 2"}, {"smoker", "yes no"}, {"degree", "none phd"},
		{"experience", "high low"}, {"Therapie", "ja nein"}, {"Suizidversuche", "0 1"}, {"diagnóstico", "si no"}, {"iq", "99 112"},
	} {
		for _, beside := range []string{"worker_id", "group", "rater_age"} {
			in, values := "id,"+beside+","+test.column+",mood\n", strings.Fields(test.values)
			for i := range 12 {
				in += fmt.Sprintf("1n6oi%d,%d,%s,%s\n", i, 300+i%3, values[i%2], []string{"joy", "anger"}[i/2%2])
			}
			d, err := initFiles(t, Options{Options: manifest.Options{Known: english}}, file(t, "a.csv", in))
			if err != nil {
				t.Fatal(err)
			}
			asked := strings.Contains(strings.Join(d.Warnings, "\n"),
				fmt.Sprintf("column %q may tell of the people in column %q, or of", test.column, beside))
			if !slices.Contains(d.Example[0], slug(test.column)) || asked != (beside != "group") {
				t.Errorf("%s beside %s: the columns are %q, look at %q", test.column, beside, d.Example[0], d.Warnings)
			}
		}
		if got := LookOfName(slug(test.column), english); got != "may tell of people who were asked" {
			t.Errorf("%s: %q", test.column, got)
		}
	}
}

// TestInitAsksAboutManyRows: of several rows about one image, what can be told of the people who were asked, and is not
// the same in all of these rows, is named. It stays, for it can be a label.
func TestInitAsksAboutManyRows(t *testing.T) {
	in := "id,image,age,gender,country,education,therapy,mood\n"
	for i := range 24 {
		in += fmt.Sprintf("1n6oi%d,%d,%d,%s,%s,%s,%s,%s\n", i%6, i%2, 20+i/6, []string{"female", "male"}[i/6%2],
			[]string{"peru", "chad", "peru"}[i%3], []string{"phd", "ba"}[i/6%2],
			[]string{"yes", "no"}[i/12], []string{"joy", "anger"}[i/6%2])
	}
	for _, many := range []bool{true, false} {
		d, err := initFiles(t, Options{Options: manifest.Options{Known: english}, Many: many}, file(t, "a.csv", in))
		if err != nil {
			if many {
				t.Fatal(err)
			}
			continue
		}
		said := strings.Join(d.Warnings, "\n")
		for name, want := range map[string]string{"age": "a.csv:8:10", "gender": "a.csv:8:13", "country": "",
			"education": "a.csv:8:23", "therapy": "a.csv:14:29", "mood": ""} {
			line := fmt.Sprintf("column %q is not the same in all rows about one image, such as at ", name)
			if strings.Contains(said, line) != (many && want != "") || many && !strings.Contains(said, want) {
				t.Errorf("many %v, %s: look at\n%s", many, name, said)
			}
			if !slices.Contains(d.Example[0], name) {
				t.Errorf("%s was left out", name)
			}
		}
	}
}

// TestLooksLikeAccounts: which labels look like names of accounts.
func TestLooksLikeAccounts(t *testing.T) {
	for _, labels := range []string{
		"jkim545 cyXie Lil_SpazJoekp Watchful1 Jupin210 DankMemesMods", "kn0thing spez",
		"Watchful1 jkim545 bboe DankMemesMods", "AutoModerator Watchful1",
		"@joekp @cy_xie", "a_schmidt t_miller", "a.schmidt t.miller b.okonkwo", "j_kvamsdal none t_okonkwo",
		"A_Schmidt T-Miller2", "xX_jo3kp_Xx cyXie", "jkim545", "Jupin-210 cyXie", "aschmidt tmiller",
		"asilva2 none kgarcia",
	} {
		if !lookLikeAccounts(strings.Fields(labels), english) {
			t.Errorf("%s do not look like accounts", labels)
		}
	}
	for _, labels := range []string{"Анна,Борис", "محمد,فاطمة", "王伟,李娜,张敏", "太郎,花子", "田中 太郎,鈴木 一郎", "김민수,박지훈",
		"משה,רחל", "Γιώργος,Ελένη", "राहुल,प्रिया",
		"สมชาย,สมหญิง", "Kwame,Ngozi,Chidi", "Nguyen,Tran,Thuy", "HansMeier,AnnaSchmidt", "A. Meier,B. Schmidt",
		"Иванов И. И.,Петров П.", "anna,bert", "Hans Meier,Anna Schmidt,Leo Huber", "Meier; Clara,Élif,José",
		"anna_1,bob_2", "alice:pos,bob:neg", "Schmidt,Miller,Garcia", "Hinton,Okafor,Weber", "schmidt_1,miller_1,none",
		"Kim vs Miller,Miller vs Kim",
		"Jana vs Mei,Mei vs Tom", "Jana-1,Jana-2,Mei-1", "by annaschmidt,by tomgarcia", "MeierAnna,AnnaSchmidt"} {
		if got := lookLikeNames(strings.Split(labels, ","), english); got != "names of people" {
			t.Errorf("%s look like %q", labels, got)
		}
	}
	for _, labels := range []string{
		"радость вера надежда любовь", "积极 消极 中性", "高兴 愤怒 难过", "嬉しい 悲しい", "긍정 부정 중립", "김치 박물관 최고", "فرح حزن", "χαρά λύπη",
		"खुशी दुख", "joy hope none", "mark_spam keep", "bert roberta gpt-2", "gpt claude gemini bert",
		"julia ruby ada python", "Paris Jordan Georgia", "metaphor bob none", "anna",
		"Donald_Trump Brexit Covid", "Sanders Trump Brexit", "flores torres gatos", "vogel fuchs hund",
		"white black king", "roberta bert gpt-2", "2024-01-01T10:00:00Z 2024-01-02T10:00:00Z",
		"Metaphor Irony None", "SS1 SS2 SS4", "F1 F2 F3", "figurative_language irony", "c_2_way_label c_3_way_label",
		"HateSpeech OffensiveLanguage Neither",
		"hateful non-hateful notHateful", "very_negative negative neutral positive very_positive",
		"en de fr pt-BR en-US zh-Hans", "NSFW SFW", "LGBTQ POC women",
		"class1 class2 class3", "topic_17 topic_4", "covid19 negative none", "traurig froh angst", "0 1 2", "2_way 3_way",
		"gpt-4 llama-2-7b mistral-7b claude-3", "image text",
		"gpt-3.5 gpt-4.1 o1-mini", "Q1 Q2 Q3", "2019-Q1 2020-Q2", "IC3 OTH SR1", "A+ A B-", "AskReddit memes me_irl",
		"jpg png gif mp4", "l_wing r_wing", "a_lustig b_traurig c_froh", "h_hass n_neutral", "m_lustig m_traurig", "c_label e_thing",
		"a_schmidt b_moon other none", "i.redd.it v.redd.it", "eebbqej ed5f85d edvnz26 ee1kqa8 edqywzt ed00q6i",
		"lvl1 lvl2 lvl3", "USA GBR DEU", "yes no", "n/a bboe", "Antisemitism Islamophobia Ableism", "B2B B2C",
		"neg_emo pos_emo", "",
	} {
		if got := lookLikeNames(strings.Fields(labels), english); got != "" {
			t.Errorf("%s look like %s", labels, got)
		}
	}
	if lookLikeAccounts([]string{"jkim545"}, nil) {
		t.Error("without a dictionary there are accounts")
	}
}

// TestLooksLikeCodes: colours are labels. Ids and digests are not called names of accounts, and are left out as these
// are. A name among them is called one.
func TestLooksLikeCodes(t *testing.T) {
	const codes = "codes, which can be ids or names of accounts"
	for labels, want := range map[string]string{
		"#2b2e3a #ffffff #1a1a1a": "", "#2B2E3A #fff none": "", "#0079d3": "", "#ff4500 transparent": "",
		"#2b2e3a #ffffff jkim545": "names of accounts", "#2b2e3a #ffffff #jkim545": "names of accounts",
		"2b2e3a ffffff 1a1a1a": codes, "2s5ti 2qh33 2qh1i": codes, "t5_2s5ti t5_2qh33 t5_2qh1i": codes, "2s5ti": codes,
		"1q2wbv 1n6oiw": codes, "d41d8cd 0cc175b": codes, "d41d8cd98f00b204 0cc175b9c0f1b6a8": codes,
		"ed5f85d ee1kqa8 ed00q6i": codes, "0xff00ff 0x2b2e3a": codes, "D41D8CD98F00 0CC175B9C0F1": "",
		"2s5ti jkim545": "names of accounts", "2s5ti cyXie": "names of accounts", "2s5ti bboe": "names of accounts",
		"kn0thing spez": "names of accounts", "kn0thing m4rkus": "names of accounts", "tl772 kn199": "names of accounts",
		"jkim545": "names of accounts", "2s5ti a_schmidt": "names of accounts", "2s5ti,aschmidt": "names of accounts",
	} {
		if got := lookLikeNames(strings.Fields(labels), english); got != want {
			t.Errorf("%s look like %q, want %q", labels, got, want)
		}
	}
	for text, want := range map[string]string{"#2b2e3a": "", "2s5ti": "looks like an id, or the name of an account",
		"jkim545": "looks like the name of an account", "kn0thing": "looks like the name of an account"} {
		if got := LookOfText(text, english); got != want {
			t.Errorf("%s %q, want %q", text, got, want)
		}
	}
}

// TestOrdinaryWords: a column whose name may be that of people has labels where its values are a few words of the
// dictionary that repeat, and a line says so. What names people who study or are studied never is.
func TestOrdinaryWords(t *testing.T) {
	const taken = "may be about people by its name, but its values are a few ordinary words: it was taken for labels"
	for _, test := range []struct {
		name, values string
		taken        bool
	}{
		{"victim", "self other none", true}, {"operator", "and or", true}, {"person", "first second",
			true}, {"author_emotion", "joy fear", true},
		{"speaker", "first second", true}, {"user_intent", "inform humor", true}, {"victim", "Victim Perpetrator",
			true},
		{"victim", "clara bert", false}, {"victim", "xyzzo self", false}, {"person", "april may", false}, {"person",
			"R1 R2", false},
		{"annotator", "first second", false}, {"client", "self other", false}, {"user_name", "self other",
			false}, {"author_flair", "self other", false},
		{"author_gender", "self other", false}, {"rater", "otter self", false}, {"operator_id", "self other", false},
	} {
		values := strings.Fields(test.values)
		in := "id,mood," + test.name + "\n"
		for i := range 12 {
			in += fmt.Sprintf("a%d,sad,%s\n", i, values[i%len(values)])
		}
		d, err := initFiles(t, Options{Options: manifest.Options{Known: english}}, file(t, "a.csv", in))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(d.Warnings, "\n")
		if took := slices.Contains(d.Example[0], test.name); took != test.taken ||
			strings.Contains(said, taken) != test.taken || said == "" {
			t.Errorf("%s with %s: the columns are %v; it says %q", test.name, test.values, d.Example[0], said)
		}
	}
}

// TestInitLeavesNamesOut: no name of a person is in what init writes, nor among what it says.
func TestInitLeavesNamesOut(t *testing.T) {
	names := []string{"jkim545", "cyXie", "Lil_SpazJoekp", "bboe"}
	var b strings.Builder
	b.WriteString("id,approved_by,mystery,mood,saved,kept\n")
	for i := range 40 {
		fmt.Fprintf(&b, "1a%02d,%s,%s,%s,False,%s\n", i, names[i%4], names[(i+1)%4], []string{"sad", "glad"}[i%2],
			names[i%3])
	}
	d, err := initFiles(t, Options{Options: manifest.Options{Known: english}, Keep: []string{"kept"}}, file(t,
		"a.csv", b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(d.Example[0], ","), "id,mood,kept"; got != want {
		t.Errorf("the columns are %s, want %s", got, want)
	}
	said := string(d.Settings) + strings.Join(slices.Concat(d.Notes, d.Warnings), "\n")
	for _, name := range names {
		if strings.Contains(said, name) {
			t.Errorf("release.toml or a note names %s", name)
		}
	}
	for _, want := range []string{
		`not used: "mystery": its values look like names of accounts; --keep "mystery" publishes them`,
		`column "mystery" may hold names of accounts: it was left out`,
		`column "approved_by" may hold personal data: it was left out`,
		`not used: "saved": it tells of the account that collected the posts`,
		`column "kept" holds what people wrote or who they are: it is published with the release, because --keep names it`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	written(t, d, manifest.Options{})
}

// TestNamesWithInitials: names beside initials without points are those of people, and a list that counts is none.
func TestNamesWithInitials(t *testing.T) {
	for labels, want := range map[string]bool{
		"Conway M|Chen L": true, "CONWAY M|CHEN LK": true, "MConway|LChen|TOkafor": true, "Conway M|sad|glad": false,
		"Type A|Type B|Type AB": false, "NSFW|SFW": false, "Conway, M|Chen, L": true, "sad|glad": false,
	} {
		if got := arePeople(strings.Split(labels, "|")); got != want {
			t.Errorf("%s: %v", labels, got)
		}
	}
}

// TestCheckers: a column of checks can say who checked a row.
func TestCheckers(t *testing.T) {
	for _, test := range []struct{ name, values, want string }{
		{"verified", "LC KM", "the initials of people"}, {"QA", "LC KM PTA", "the initials of people"},
		{"checked", "Mark Garcia Nguyen", "names of people"}, {"label", "LC KM", ""}, {"tone", "Garcia Nguyen", ""},
		{"verified", "True False", ""}, {"verified", "yes no", ""}, {"checked", "Positive Negative", ""},
		{"checked", "Positive Garcia other fine", ""}, {"quality", "NEG POS", ""},
	} {
		c := &surveyed{name: test.name}
		for text := range strings.FieldsSeq(test.values) {
			c.cells = append(c.cells, []string{text})
		}
		if got := c.checkers(english); got != test.want {
			t.Errorf("%s of %s: %q", test.name, test.values, got)
		}
	}
}
