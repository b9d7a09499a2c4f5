"""What the first page of the sample's report says at first glance."""

from bs4 import BeautifulSoup

from .pages import tables


def text(page: BeautifulSoup, selector: str) -> list[str]:
    return [" ".join(each.get_text(" ").split()) for each in page.select(selector)]


def test_it_is_a_sample_as_the_card_says(index_page: BeautifulSoup) -> None:
    assert text(index_page, "header .lead") == [
        "For each model a set of images that it finds easy, that show exactly one thing, and that carry no watermark, "
        "filter, border or noise: up to 3 of each class, out of 480 images. Images of tier relaxed carry several "
        "labels, the class among them."
    ]
    assert text(index_page, ".notice") == [
        "Made from 480 images, not from the 50,000 of ImageNet's validation set: a sample or a trial, not for a study."
    ]


def test_headline_figures(index_page: BeautifulSoup) -> None:
    assert text(index_page, ".headlines > div") == [
        "different images in the sets 71",
        "classes full for every model 11 of 12",
        "images reviewed, by 2 reviewers 139",
        "images rejected for a flaw 51",
        "same verdict by two reviewers, on 5 images 80 %",
    ]


def test_a_strip_of_images_one_of_each_class(index_page: BeautifulSoup) -> None:
    assert text(index_page, ".strip li") == [
        "goldfish", "ladybug", "starfish", "analog clock", "balloon", "beacon", "soccer ball", "umbrella",
        "traffic light", "mushroom", "strawberry", "banana",
    ]  # fmt: skip
    assert [str(image["src"]) for image in index_page.select(".strip img")][:2] == [
        "images/ILSVRC2012_val_00000065.jpg", "images/ILSVRC2012_val_00000149.jpg",
    ]  # fmt: skip


def test_the_hardest_classes(index_page: BeautifulSoup) -> None:
    hardest = tables(index_page, "classes")[1]
    assert hardest[0] == ["class", "standard", "norm_robust", "corruption_robust", "rejected", "for"]
    assert hardest[1:3] == [
        ["mushroom n07734744", "1", "1", "0", "17", "blur 4, filter 4, noise 4, collage 3, text 2"],
        ["traffic light n06874185", "3", "3", "3", "14", "blur 3, filter 3, noise 3, text 3, collage 2"],
    ]
    assert len(hardest) == 9, "every other class is full, and lost no image"


def test_an_image_that_is_not_needed_counts_once(index_page: BeautifulSoup) -> None:
    """Eight of the 307 images are candidates of two classes."""
    assert ["not needed", "262", "244", "196", "307"] in tables(index_page, "rejected")[0]
