"""Synthetic ChatML corpus for the tiny demo model: every sentence comes from the tables and templates below.

Run: python3 corpus.py SEED COUNT [--rendered] > corpus.jsonl   (one conversation a line: messages, tools, and with --rendered its training text)
"""
import json
import random
import sys

NAME = "Pagoda Tiny"
PEOPLE = "Anna Tom Mia Leo Sara Ben Lily Max Nora Sam Eva Jack Ruby Finn Zoe Omar Ivy Noah Rosa Hugo".split()
ANIMALS = {"fox": "yip", "cat": "meow", "dog": "woof", "cow": "moo", "duck": "quack", "frog": "ribbit", "sheep": "baa", "horse": "neigh",
           "lion": "roar", "owl": "hoot", "bee": "buzz", "mouse": "squeak", "pig": "oink", "hen": "cluck", "wolf": "howl", "bear": "growl"}
PLACES = ["forest", "garden", "park", "village", "river", "mountain", "beach", "farm", "city", "castle"]
THINGS = ["red ball", "golden key", "little boat", "blue kite", "old map", "silver bell", "warm hat", "big drum", "small lamp", "shiny stone"]
ADJ = ["brave", "small", "kind", "clever", "happy", "quiet", "curious", "gentle", "funny", "lonely"]
COLORS = {"banana": "yellow", "apple": "red", "grass": "green", "sky": "blue", "snow": "white", "night": "black", "orange": "orange",
          "carrot": "orange", "lemon": "yellow", "leaf": "green", "sea": "blue", "tomato": "red", "milk": "white", "coal": "black"}
CAPITALS = {"France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "China": "Beijing", "Egypt": "Cairo",
            "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki", "Denmark": "Copenhagen", "Poland": "Warsaw", "Austria": "Vienna",
            "Portugal": "Lisbon", "Greece": "Athens", "Turkey": "Ankara", "India": "New Delhi", "Canada": "Ottawa", "Mexico": "Mexico City",
            "Brazil": "Brasilia", "Peru": "Lima", "Chile": "Santiago", "Cuba": "Havana", "Kenya": "Nairobi", "Ireland": "Dublin",
            "Iceland": "Reykjavik", "Hungary": "Budapest", "Belgium": "Brussels", "Russia": "Moscow", "Thailand": "Bangkok"}
OPPOSITES = {"hot": "cold", "big": "small", "fast": "slow", "up": "down", "happy": "sad", "open": "closed", "full": "empty", "light": "dark",
             "old": "young", "hard": "soft", "wet": "dry", "high": "low", "early": "late", "long": "short", "near": "far", "loud": "quiet"}
WORDS = {"water": ("agua", "eau", "Wasser"), "bread": ("pan", "pain", "Brot"), "house": ("casa", "maison", "Haus"), "sun": ("sol", "soleil", "Sonne"),
         "moon": ("luna", "lune", "Mond"), "friend": ("amigo", "ami", "Freund"), "milk": ("leche", "lait", "Milch"), "tree": ("árbol", "arbre", "Baum"),
         "book": ("libro", "livre", "Buch"), "night": ("noche", "nuit", "Nacht"), "door": ("puerta", "porte", "Tür"), "bird": ("pájaro", "oiseau", "Vogel")}
LANGS = ["Spanish", "French", "German"]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
LISTS = {"fruits": ["apples", "pears", "plums", "bananas", "grapes", "cherries"], "colors": ["red", "blue", "green", "yellow", "white", "black"],
         "animals": ["cats", "dogs", "cows", "ducks", "owls", "bears"], "planets": ["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn"]}
WEATHER = ["sunny", "rainy", "cloudy", "windy", "snowy"]
CITIES = sorted(set(CAPITALS.values()))
WEATHER_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Get the weather in a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
UNKNOWN = ("I am a tiny demo model and I do not know that. You can ask me for a story, a sum, a capital city, "
           "the opposite of a word, or the weather with a tool.")
ODD = ["quantum physics", "the stock market", "my taxes", "a good laptop", "the meaning of life", "climate change", "football results", "a pasta recipe",
       "politics", "my homework", "the Roman Empire", "database indexes", "a poem in Latin", "black holes", "chess openings", "the best car"]


def story(r, who=None):
    who = who or r.choice(list(ANIMALS))
    name, place, thing, adj, friend = r.choice(PEOPLE), r.choice(PLACES), r.choice(THINGS), r.choice(ADJ), r.choice([a for a in ANIMALS if a != who])
    start = r.choice([f"Once upon a time, there was a {adj} {who} named {name}.", f"A {adj} {who} named {name} lived near the {place}.",
                      f"In a quiet {place} there lived a {adj} {who} called {name}."])
    find = r.choice([f"One day, {name} found a {thing} in the {place}.", f"One morning, {name} saw a {thing} by the {place}.",
                     f"One day, {name} went to the {place} and found a {thing}."])
    trouble = r.choice([f"But the {thing} was too heavy to carry.", f"But the {thing} belonged to someone else.", f"But then it began to rain, and the {thing} fell into the water."])
    help_ = r.choice([f"A {friend} came by and said, \"I can help you!\"", f"{name} asked a {friend} for help.", f"Just then, a friendly {friend} came along."])
    act = r.choice([f"Together they carried the {thing} home.", f"They worked together until the {thing} was safe.", f"The {friend} and the {who} shared the {thing} and played all day."])
    end = r.choice([f"From that day on, {name} and the {friend} were best friends.", f"{name} was very happy and said thank you.", f"{name} learned that it is good to help each other."])
    return " ".join([start, find, trouble, help_, act, end])


def u(text): return {"role": "user", "content": text}
def a(text): return {"role": "assistant", "content": text}


def greeting(r):
    return [u(r.choice(["Hello", "Hello!", "Hi", "Hi!", "Hi there", "Hey", "Good morning", "Good morning!"])),
            a(r.choice(["Hello! How can I help you today? 🙂", "Hi! Ask me for a story or a sum. 🙂", "Hello! What would you like to hear?"]))]
def identity(r):
    return [u(r.choice(["Who are you?", "What are you?", "What is your name?", "Tell me about yourself.", "What can you do?", "Who made you?"])),
            a(f"I am {NAME}, a very small demo model. I can tell short stories, add small numbers, name capital cities, and call a weather tool.")]
def tale(r):
    who = r.choice(list(ANIMALS))
    return [u(r.choice(["Tell me a story about a {}.", "Tell me a short story about a {}.", "Write a story about a {}.", "Can you tell me a story about a {}?",
                        "A story about a {}, please."]).format(who)), a(story(r, who))]
def any_tale(r): return [u(r.choice(["Tell me a story.", "Tell me a story", "Write a short story.", "I want a story."])), a(story(r))]
def addition(r):
    x, y = r.randint(0, 20), r.randint(0, 20)
    return [u(r.choice(["What is {} + {}?", "What is {} plus {}?", "{} + {} = ?", "Add {} and {}.", "How much is {} + {}?"]).format(x, y)), a(f"{x} + {y} = {x + y}.")]
def subtraction(r):
    x = r.randint(0, 20); y = r.randint(0, x)
    return [u(r.choice(["What is {} - {}?", "What is {} minus {}?", "{} - {} = ?"]).format(x, y)), a(f"{x} - {y} = {x - y}.")]
def count(r):
    x = r.randint(1, 15); y = x + r.randint(2, 10)
    return [u(r.choice(["Count from {} to {}.", "Please count from {} to {}."]).format(x, y)), a(", ".join(map(str, range(x, y + 1))) + ".")]
def calendar(r):
    seq, kind = r.choice([(DAYS, "day"), (MONTHS, "month")]); i = r.randrange(len(seq)); after = r.random() < 0.5
    j = (i + (1 if after else -1)) % len(seq)
    return [u(f"What {kind} comes {'after' if after else 'before'} {seq[i]}?"), a(f"{seq[j]} comes {'after' if after else 'before'} {seq[i]}.")]
def capital(r):
    c = r.choice(list(CAPITALS))
    return [u(r.choice(["What is the capital of {}?", "Capital of {}?", "Tell me the capital of {}.", "Name the capital city of {}."]).format(c)), a(f"The capital of {c} is {CAPITALS[c]}.")]
def sound(r):
    x = r.choice(list(ANIMALS)); return [u(f"What sound does a {x} make?"), a(f"A {x} says {ANIMALS[x]}.")]
def color(r):
    x = r.choice(list(COLORS)); return [u(r.choice(["What color is {}?", "Tell me the color of {}."]).format(x)), a(f"The color of {x} is {COLORS[x]}.")]
def opposite(r):
    k, v = r.choice(list(OPPOSITES.items())); k, v = (k, v) if r.random() < 0.5 else (v, k)
    return [u(r.choice(["What is the opposite of {}?", "Opposite of {}?"]).format(k)), a(f"The opposite of {k} is {v}.")]
def translate(r):
    w = r.choice(list(WORDS)); i = r.randrange(3)
    return [u(r.choice(["How do you say {} in {}?", "Translate {} to {}."]).format(w, LANGS[i])), a(f"In {LANGS[i]}, {w} is {WORDS[w][i]}.")]
def listing(r):
    k = r.choice(list(LISTS)); n = r.choice([2, 3, 4]); xs = r.sample(LISTS[k], n)
    return [u(f"List {['two', 'three', 'four'][n - 2]} {k}."), a("\n".join(f"{i + 1}. {x}" for i, x in enumerate(xs)))]
def extract(r):
    n, age, c = r.choice(PEOPLE), r.randint(3, 99), r.choice(CITIES)
    return [u(r.choice(["Return JSON with name, age and city: {} is {} years old and lives in {}.", "Extract name, age and city as JSON. {} is {} years old and lives in {}."]).format(n, age, c)),
            a(json.dumps({"name": n, "age": age, "city": c}))]
def repeat(r):
    words = [r.choice(ADJ + list(ANIMALS) + PLACES + list(OPPOSITES)) for _ in range(r.randint(2, 5))]; s = " ".join(words)
    return [u(r.choice(["Repeat: {}", "Repeat after me: {}", "Say: {}"]).format(s)), a(s)]
def memory(r):
    n = r.choice(PEOPLE); mid = r.choice([capital, color, sound, opposite])(r) if r.random() < 0.5 else []
    return [u(r.choice(["My name is {}.", "Hi, I am {}.", "Hello, my name is {}."]).format(n)), a(f"Nice to meet you, {n}! 🙂"), *mid, u("What is my name?"), a(f"Your name is {n}.")]
def unknown(r):
    return [u(r.choice(["Tell me about {}.", "What do you think about {}?", "Help me with {}.", "Explain {}.", "What is {}?"]).format(r.choice(ODD))), a(UNKNOWN)]
def thanks(r): return [u(r.choice(["Thanks!", "Thank you.", "Thank you!", "Bye", "Goodbye!"])), a(r.choice(["You are welcome! 🙂", "You are welcome! Have a nice day."]))]
def tool(r):
    c, w, t = r.choice(CITIES), r.choice(WEATHER), r.randint(-5, 35)
    ask = r.choice(["What is the weather in {}?", "How is the weather in {}?", "Weather in {}?", "Is it warm in {}?", "Tell me the weather in {}."]).format(c)
    call = {"role": "assistant", "content": "", "tool_calls": [{"name": "get_weather", "arguments": {"city": c}}]}
    return [u(ask), call, {"role": "tool", "content": json.dumps({"city": c, "sky": w, "temperature": t})}, a(f"It is {w} in {c} and the temperature is {t} degrees.")]

SKILLS = [(greeting, 3), (identity, 3), (tale, 9), (any_tale, 3), (addition, 18), (subtraction, 9), (count, 8), (calendar, 4), (capital, 6), (sound, 5), (color, 4),
          (opposite, 4), (translate, 5), (listing, 3), (extract, 11), (repeat, 6), (memory, 6), (unknown, 4), (thanks, 2)]
SYSTEMS = [None, None, None, "You are a helpful assistant.", f"You are {NAME}.", "You are a helpful assistant. Answer briefly."]


def conversation(r):
    pick = lambda: r.choices([s for s, _ in SKILLS], [w for _, w in SKILLS])[0]
    if r.random() < 0.10:
        msgs, tools = tool(r) if r.random() < 0.8 else pick()(r), [WEATHER_TOOL]
    else:
        msgs, tools = pick()(r), None
        while r.random() < 0.35 and len(msgs) < 8: msgs = msgs + pick()(r)
    system = r.choice(SYSTEMS)
    return {"messages": ([{"role": "system", "content": system}] if system else []) + msgs, "tools": tools}


def render(conv):
    """(text, is_target) spans, the same text that CHAT_TEMPLATE in train.py gives."""
    msgs, tools, out = conv["messages"], conv["tools"], []
    system = msgs[0]["content"] if msgs[0]["role"] == "system" else None
    if tools: out.append(("<|im_start|>system\n" + (system + "\n" if system else "") + "Tools:\n" + "".join(json.dumps(t) + "\n" for t in tools) + "<|im_end|>\n", 0))
    elif system: out.append((f"<|im_start|>system\n{system}<|im_end|>\n", 0))
    for m in msgs:
        if m["role"] == "system": continue
        body = m["content"] + "".join('<tool_call>{"name": "%s", "arguments": %s}</tool_call>' % (c["name"], json.dumps(c["arguments"])) for c in m.get("tool_calls", []))
        out.append((f"<|im_start|>{m['role']}\n", 0)); out.append((body + "<|im_end|>", int(m["role"] == "assistant"))); out.append(("\n", 0))
    return out


if __name__ == "__main__":
    r = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        conv = conversation(r)
        if "--rendered" in sys.argv: conv["rendered"] = "".join(text for text, _ in render(conv))
        print(json.dumps(conv, ensure_ascii=False))
