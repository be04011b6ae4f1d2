"""The evaluation set of the facts: statements of a person and a family in one year, and the
questions they ask later.

Questions use other words than the facts where people would. A third of the facts are distractors:
the same names, places and things in other contexts. This module contains only data.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple


class Asked(NamedTuple):
    """A question, and the beginnings of the facts that answer it.

    `kind` is plain, paraphrase, pair or stale.
    """

    kind: str
    question: str
    answers: tuple[str, ...]


TOLD = """
I lived by the sea as a child, said the old me: forget it
I live in Lisbon
I work at Siemens
My name is Joana
My birthday is on 14 August 1988
I'm allergic to penicillin
My sister Ana lives in Porto
Ana's birthday is on 3 May
Ana works as a nurse
Ana likes climbing
Ana prefers tea
My brother Ben lives in Berlin
Ben's birthday is on 9 October
Ben works at Zalando
Ben is allergic to cats
Ana and Ben share the cottage in Gerês
Ana and Ben bought the blue canoe together
Ana and Clara run the half marathon every spring
Ben and Clara started a podcast about trains
Clara and Duarte got engaged in Sintra
Duarte and Ana argued about the inheritance
Clara lives in Madrid
Clara works as a translator
Clara likes opera
Clara hates mushrooms
Duarte lives in Faro
Duarte works at Galp
Duarte likes surfing
My mother is called Teresa
My father is called Rui
Teresa plays the cello in the town orchestra
Rui repairs old clocks in the garage
My dog is called Pipoca
Pipoca was vaccinated against rabies in June
My cat is called Miso
Miso eats only dry food
My doctor is called Dr Moreira
Dr Moreira has her practice in Rua da Alegria
I like hiking
I hate coriander
I prefer window seats over aisle seats
My favourite colour is green
My favourite book is The Leopard
My favourite film is Amarcord
I don't eat pork
I drive a grey Skoda
The Skoda needs new brakes before winter
The gym membership costs 32 euros a month
The wifi at the cottage is called Larouco
The boiler was serviced by Aquatec in March
Aquatec sends its invoices by post
We decided to repaint the kitchen in September
We decided to use PostgreSQL for the Heron project
The Heron project ships its beta on 12 January
Heron runs on two servers in Frankfurt
Marta is the designer of Heron
Marta prefers meetings before noon
Paulo reviews the security of Heron
Paulo and Marta disagree about the login page of Heron
The Kestrel project was cancelled by the board
Kestrel had a budget of 40,000 euros
Marta led Kestrel until it was cancelled
Olga teaches me Russian on Tuesdays
Olga charges 25 euros an hour
I speak Portuguese, English and a little Russian
My passport expires in February 2029
My shoe size is 39
The dentist found a crack in my upper left molar
I wear contact lenses with minus 3.5
Grandma Rosa makes bacalhau on Christmas Eve
Rosa turns 90 next summer
Rosa and Teresa do not speak about the farm
The farm in Trás-os-Montes belongs to Rosa
Nuno rents the field of the farm
Nuno keeps eleven sheep
The landlord is called Senhor Pires
Pires wants the rent by the fifth
The flat has a lease until March 2028
The bicycle was stolen at Cais do Sodré
The police report has the number 2231
I moved to Porto
I work at Critical Software
Ana moved to Braga
Ana works as a teacher
Ben moved to Hamburg
Ben works at Airbus
My favourite colour is orange
Clara moved to Valencia
Duarte works at EDP
""".strip().splitlines()[1:]
"""In the order in which they were said: what comes later is truer."""

_PEOPLE_NAMES = """
Alice Bruno Chen Diana Emil Farah Goran Hana Igor Jana Kofi Lena Oskar Petra Quinn Stefan
"""
_PEOPLE = _PEOPLE_NAMES.split()
_PLACES = ["Lisbon", "Porto", "Berlin", "Madrid", "Faro", "Braga", "Hamburg", "Valencia"]
_THINGS = ["tea", "coffee", "opera", "surfing", "climbing", "hiking", "mushrooms", "trains"]
NOISE = [
    *(f"{who} lives in {place}" for who, place in zip(_PEOPLE, _PLACES * 2, strict=True)),
    *(f"{who} likes {what}" for who, what in product(_PEOPLE, _THINGS[:5])),
    *(f"{who} met {other} in {place}" for n, place in enumerate(_PLACES)
      for who, other in zip(_PEOPLE[: 12 - n], _PEOPLE[n + 1 : 13], strict=True)),
    *(f"The meeting with {who} about the budget is every month" for who in _PEOPLE),
    *(f"{who} works as a nurse in {place}" for who, place in zip(_PEOPLE[:8], _PLACES, strict=True)),
    *(f"{who}'s birthday is on {day} October" for day, who in enumerate(_PEOPLE, 1)),
    *(f"{who} and {other} share an office" for who, other in zip(_PEOPLE[::2], _PEOPLE[1::2], strict=True)),
]  # fmt: skip

_QUESTIONS = """
plain | What is my name? | My name is
plain | When is my birthday? | My birthday is
plain | When is Ana's birthday? | Ana's birthday
plain | When is Ben's birthday? | Ben's birthday
plain | What am I allergic to? | I'm allergic
plain | What is Ben allergic to? | Ben is allergic
plain | What does Clara hate? | Clara hates
plain | What is my dog called? | My dog is
plain | What is my favourite book? | My favourite book
plain | What is my favourite film? | My favourite film
plain | When does my passport expire? | My passport expires
plain | What did we decide about the kitchen? | We decided to repaint
plain | When does Heron ship its beta? | The Heron project ships
plain | What does Olga charge? | Olga charges
plain | What is the number of the police report? | The police report
plain | Where was the bicycle stolen? | The bicycle was stolen
plain | Who rents the field of the farm? | Nuno rents
plain | When does the lease of the flat end? | The flat has a lease
plain | What does Miso eat? | Miso eats
plain | How many sheep does Nuno keep? | Nuno keeps
plain | Who serviced the boiler? | The boiler was
paraphrase | how old am I turning, when was I born? | My birthday is
paraphrase | Which medicine must I avoid? | I'm allergic
paraphrase | who are my siblings | My sister is, My brother is, My sister Ana, My brother Ben
paraphrase | Which pets do we have? | My dog is, My cat is
paraphrase | What are my mom and dad called? | My mother is, My father is
paraphrase | Which herb can I not stand? | I hate coriander
paraphrase | Which seat should you book for me on the plane? | I prefer window
paraphrase | Which meat do I avoid? | I don't eat
paraphrase | What kind of vehicle is mine? | I drive a
paraphrase | What must be fixed on the car before winter? | The Skoda needs
paraphrase | Which instrument does Teresa play? | Teresa plays
paraphrase | What is dad's hobby in the garage? | Rui repairs
paraphrase | Which database does Heron use? | We decided to use
paraphrase | Which languages do I speak? | I speak
paraphrase | What size are my feet, for shoes? | My shoe size
paraphrase | Who is my physician? | My doctor is
paraphrase | Where does Dr Moreira see patients? | Dr Moreira has
paraphrase | What is the network called at the cottage? | The wifi
paraphrase | What happened to Kestrel? | The Kestrel project
paraphrase | How much money was there for Kestrel? | Kestrel had
paraphrase | What does grandma cook at Christmas? | Grandma Rosa makes
paraphrase | Whose is the farm in Trás-os-Montes? | The farm in
paraphrase | When do I have my Russian lessons? | Olga teaches
paraphrase | By when do I have to pay Pires? | Pires wants
paraphrase | How strong are my lenses? | I wear contact
pair | What do Ana and Ben have together? | Ana and Ben share, Ana and Ben bought
pair | What do Ana and Clara do together? | Ana and Clara run
pair | What is the podcast of Ben and Clara about? | Ben and Clara started
pair | What about Clara and Duarte? | Clara and Duarte got
pair | What was it with Ana and Duarte? | Duarte and Ana argued
pair | Marta and Heron? | Marta is the, Paulo and Marta
pair | What do Paulo and Marta think of each other's ideas? | Paulo and Marta
pair | Rosa and Teresa? | Rosa and Teresa
pair | What had Marta to do with Kestrel? | Marta led
pair | What does Ben have in Gerês with Ana? | Ana and Ben share
pair | Did Alice meet Diana somewhere? | Alice met Diana
pair | Where did Bruno meet Farah? | Bruno met Farah
pair | Where did Chen and Hana meet? | Chen met Hana
stale | Where do I live? | I moved to Porto
stale | Which city is my home? | I moved to Porto
stale | Where do I work? | I work at Critical
stale | Who is my employer? | I work at Critical
stale | Where does Ana live? | Ana moved to Braga
stale | What is Ana's profession? | Ana works as a teacher
stale | Where does Ben live? | Ben moved to Hamburg
stale | Where does Ben work? | Ben works at Airbus
stale | What is my favourite colour? | My favourite colour is orange
stale | Where does Clara live? | Clara moved to Valencia
stale | What company is Duarte with? | Duarte works at EDP
stale | In which town does Clara live now? | Clara moved to Valencia
"""


def questions() -> list[Asked]:
    """Return all questions with their answers."""
    found = []
    for line in _QUESTIONS.strip().splitlines():
        kind, question, answers = (part.strip() for part in line.split(" | "))
        found.append(Asked(kind, question, tuple(answer.strip() for answer in answers.split(", "))))
    return found
