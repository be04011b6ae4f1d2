"""Which tools of MCP servers `find_tools` returns for everyday requests.

The model writes a few words of its own, so a request here names what the tool should do.
"""

from __future__ import annotations

from pathlib import Path

from core.tools.mcp_tools import Offer, StoredTool, rank_offers
from core.types import Effect
from tests.fixtures.tables import each_row

# Tools as published servers describe them, by server.
TOOLS = {
    "files": {
        "read_text_file": "Read the complete contents of a file from the file system as text.",
        "write_file": "Create a new file or completely overwrite an existing file with new content.",
        "edit_file": "Make line-based edits to a text file.",
        "create_directory": "Create a new directory or ensure a directory exists.",
        "list_directory": "Get a detailed listing of all files and directories in a specified path.",
        "move_file": "Move or rename files and directories.",
        "search_files": "Recursively search for files and directories matching a pattern.",
        "get_file_info": "Retrieve metadata about a file: size, creation time, permissions.",
    },
    "github": {
        "create_issue": "Create a new issue in a GitHub repository.",
        "list_issues": "List issues in a GitHub repository.",
        "add_issue_comment": "Add a comment to a specific issue in a GitHub repository.",
        "create_pull_request": "Create a new pull request in a GitHub repository.",
        "merge_pull_request": "Merge a pull request in a GitHub repository.",
        "list_commits": "Get a list of commits of a branch in a GitHub repository.",
        "create_branch": "Create a new branch in a GitHub repository.",
        "search_repositories": "Search for GitHub repositories by name, description or topic.",
        "list_notifications": "Lists all GitHub notifications for the user.",
    },
    "home": {
        "turn_on": "Turns on a light, a switch or another device.",
        "turn_off": "Turns off a light, a switch or another device.",
        "set_temperature": "Sets the target temperature of the heating or the air conditioner.",
        "get_state": "Gets the current state of a sensor or device: temperature, humidity, battery.",
        "lock_door": "Locks a door.",
        "unlock_door": "Unlocks a door.",
        "open_cover": "Opens a blind, a curtain, a shutter or the garage door.",
        "close_cover": "Closes a blind, a curtain, a shutter or the garage door.",
        "play_media": "Plays music, a radio station or a podcast on a speaker.",
        "pause_media": "Pauses the music or film on a media player.",
        "set_volume": "Sets the volume of a speaker or television.",
        "start_vacuum": "Starts the robot vacuum cleaner.",
    },
    "todo": {
        "add_task": "Adds a task to the to-do list or a project, with a due date and labels.",
        "complete_task": "Marks a task as completed.",
        "find_tasks": "Finds open tasks by text, project, label or due date.",
        "delete_task": "Deletes a task from the to-do list.",
        "add_project": "Creates a new project with a colour.",
        "add_shopping_item": "Adds an item to the shopping list.",
        "list_shopping_items": "Shows all items on the shopping list.",
    },
    "mail": {
        "search_messages": "Searches e-mail messages by sender, subject, words or date.",
        "read_message": "Reads one e-mail message with its attachments.",
        "send_message": "Sends an e-mail message.",
        "create_draft": "Creates a draft of an e-mail without sending it.",
        "archive_message": "Archives an e-mail message.",
        "find_contact": "Finds the e-mail address or phone number of a contact.",
    },
    "travel": {
        "plan_route": "Plans a route between two places by car, train, bus, bicycle or on foot.",
        "list_departures": "Lists the next departures of trains and buses from a station.",
        "get_forecast": "Gets the weather forecast of a place: rain, wind, temperature.",
        "find_hotel": "Finds hotels in a city with prices and free rooms.",
        "find_flight": "Finds flights between two airports with prices.",
        "convert_currency": "Converts an amount of money between two currencies.",
        "translate_text": "Translates a text into another language.",
    },
}

REQUESTS = """
read_text_file: read the file notes.txt | show me the contents of budget.md | read the file todo.txt
write_file: write this to a new file | save the recipe in a file called soup.md
edit_file: edit the text file and change line 3
create_directory: create a directory for the holiday photos | make a new directory called taxes
list_directory: list the files in my documents directory | which files and directories are in projects
move_file: rename draft.txt to final.txt | move the file into the archive directory
search_files: search for files named invoice | find files that match *.pdf
get_file_info: how big is the file, what size | when was this file created, file info
create_issue: create an issue about the broken login | open a new issue in the repository
list_issues: which issues are open in the repository | list the issues of mneme
add_issue_comment: comment on issue 12 that it is fixed | add a comment to the issue
create_pull_request: create a pull request from my branch | make a new pull request
merge_pull_request: merge the pull request | please merge pull request 7
list_commits: what were the last commits | list the commits of this week
create_branch: create a branch for the fix | make a branch called parser
search_repositories: search GitHub for repositories about ferries | search repositories for chess engines
list_notifications: do I have notifications on GitHub | show my GitHub notifications
turn_on: turn on the kitchen light | switch on the lamp in the hall | turn the lights on
turn_off: turn off all lights | turn the bedroom light off
set_temperature: set the heating to 21 degrees | set the temperature in the office to 19
get_state: what is the humidity in the bathroom | how warm is it, temperature sensor of the balcony | battery of the door sensor
lock_door: lock the front door | is the door locked, lock it
unlock_door: unlock the door for Ana
open_cover: open the blinds in the living room | open the garage door | open the curtains
close_cover: close the shutters | close the curtain in the bedroom
play_media: play some jazz music in the kitchen | play the radio | put on a podcast
pause_media: pause the music | pause the film
set_volume: set the volume of the television to 20 | turn down the volume
start_vacuum: start the vacuum cleaner | let the robot vacuum the floor
add_task: add a task to call the bank on Friday | add a task to water the plants
complete_task: mark the task as completed | complete the task about the tax return
find_tasks: which tasks are due today | find my open tasks for the project garden
delete_task: delete the task about the old fridge
add_project: create a project called move | make a new project for the garden
add_shopping_item: add milk to the shopping list | put eggs on the shopping list
list_shopping_items: what is on the shopping list | show the shopping list
search_messages: search my e-mail for the invoice of the plumber | find messages from Ana about the boat
read_message: read the latest e-mail message | read me the message with the attachment
send_message: send an e-mail to Bob that I am late | send a message to my landlord
create_draft: draft an e-mail to the school | create a draft without sending it
archive_message: archive this e-mail | archive the message from the newsletter
find_contact: what is the phone number of Carla | find the contact of the dentist
plan_route: plan a route to Coimbra by train | how do I get there by bicycle
list_departures: next train departures from Rossio station | when does the next bus leave from the station
get_forecast: will it rain tomorrow in Porto | weather forecast for the weekend | how strong is the wind
find_hotel: find a hotel in Vienna for two nights | hotels in Lisbon with free rooms
find_flight: flights from Lisbon to Berlin | find a cheap flight in May
convert_currency: convert 200 francs to euros | how much is 50 dollars in another currency
translate_text: translate this text into Japanese | translate the letter into another language
"""

# Requests with other words than the descriptions of the tools.
PARAPHRASES = """
send_message: email Bob I'm running late | write an email to the landlord | mail send reply | send email | compose new email to Bob
read_message: open the last mail from Ana | get email content | read email
search_messages: look for emails about the invoice | any mail from the bank? | search inbox for invoice
find_contact: Carla's phone | contact lookup Carla
create_draft: prepare an email draft | save email draft
archive_message: put that mail in the archive | archive email
turn_on: switch on the lamp | light on in the kitchen | turn on lights
turn_off: switch off the heater | lights out in the bedroom | switch off lamp
set_temperature: thermostat | set thermostat to 21
get_state: how warm is it in the bedroom | is the window sensor's battery low | sensor humidity
lock_door: is the front door locked? lock it
open_cover: raise the blinds | open blinds
play_media: put on music | play radio
pause_media: stop the music | pause playback
set_volume: volume down | change speaker volume
start_vacuum: hoover the living room | vacuum
add_task: new todo | add reminder task with due date
complete_task: tick off the tax return | mark todo done
delete_task: remove a todo | remove task
add_shopping_item: we need milk, shopping list | buy eggs | add to grocery list
list_shopping_items: what do we need to buy | get shopping list
plan_route: directions to the airport | get directions by car
list_departures: when is the next train | bus timetable | train timetable
get_forecast: weather tomorrow | do I need an umbrella | weather
find_hotel: room for two nights in Vienna | search hotels
find_flight: fly to Berlin | search flights
convert_currency: dollars in euros | exchange rate | currency conversion
translate_text: say this in Spanish | translation | translate to French
read_text_file: show me notes.txt | open file | open document | read file contents
write_file: save this to a file | create text file
create_directory: new folder | make folder
list_directory: what's in the folder | list files | list folder
move_file: rename the photo | rename file
get_file_info: how big is the file | file size
create_issue: report a bug on github | open new issue
add_issue_comment: reply to the issue | comment on issue
merge_pull_request: merge PR 12 | merge pull request
list_commits: what changed on main | commit history
create_branch: new git branch | create branch
list_notifications: github notifications | show notifications
close_cover: shut the curtains
find_tasks: list tasks due today
add_project: new project
search_files: search for file
list_issues: get open issues
create_pull_request: create PR
search_repositories: search repos
set_temperature: make it 21 degrees in the living room
set_volume: make it louder
add_task: put "call the bank" on my to-dos
find_tasks: what do I have to do today
plan_route: how to get to Coimbra
search_files: find the contract pdf
list_issues: open bugs in the repo
create_pull_request: open a PR
search_repositories: find a repo about ferries
unlock_door: open the front door lock
add_task: create todo item
"""

# Requests in ten languages, in a few words, and with spelling mistakes.
OTHER_STYLES = (Path(__file__).parent / "data" / "tool_requests.txt").read_text("utf-8")


def list_offers() -> list[Offer]:
    return [
        Offer(f"{server}__{name}", server, describe(name, description), Effect.READ)
        for server, tools in TOOLS.items()
        for name, description in tools.items()
    ]


def describe(name: str, description: str) -> StoredTool:
    return StoredTool(
        name=name,
        description=description,
        schema_={"type": "object"},
        is_read_only=True,
        is_destructive=False,
        is_open=False,
    )


def list_requests(table: str = REQUESTS) -> list[tuple[str, str]]:
    pairs = [line.split(": ", 1) for line in table.strip().splitlines()]
    return [(request, name) for name, requests in pairs for request in requests.split(" | ")]


def test_table_of_everyday_tool_requests_has_a_hundred_rows_and_covers_every_tool() -> None:
    assert len(list_requests()) >= 100
    assert {name for _, name in list_requests()} == {n for each in TOOLS.values() for n in each}


@each_row(("request_text", "name"), list_requests())
def test_tool_for_an_everyday_request_ranks_among_the_first_three(
    request_text: str, name: str
) -> None:
    first = rank_offers(request_text, list_offers())[:3]
    assert name in [offer.tool.name for offer in first]


@each_row(("request_text", "name"), list_requests(PARAPHRASES))
def test_tool_for_a_request_in_other_words_ranks_among_the_first_three(
    request_text: str, name: str
) -> None:
    first = rank_offers(request_text, list_offers())[:3]
    assert name in [offer.tool.name for offer in first]


@each_row(("request_text", "name"), list_requests(OTHER_STYLES))
def test_tool_for_a_request_in_any_language_or_misspelt_ranks_among_the_first_three(
    request_text: str, name: str
) -> None:
    first = rank_offers(request_text, list_offers())[:3]
    assert name in [offer.tool.name for offer in first]


def test_name_of_a_server_says_less_about_a_tool_than_its_own_words() -> None:
    offers = [
        Offer("music__stop", "music", describe("stop", "Stops."), Effect.READ),
        Offer("home__play", "home", describe("play", "Plays music."), Effect.READ),
    ]

    assert [offer.full_name for offer in rank_offers("music", offers)] == [
        "home__play",
        "music__stop",
    ]


def test_word_that_no_tool_and_no_group_has_finds_nothing() -> None:
    assert rank_offers("xylophone", list_offers()) == []
