import datetime
import unittest

from number_format import show


class NumberFormats(unittest.TestCase):
    def test_numbers_look_as_in_a_sheet(self):
        for value, code, shown in [
            (1234.5, "#,##0.00", "1,234.50"),
            (-1234.5, "#,##0.00", "-1,234.50"),
            (1234567, "#,##0", "1,234,567"),
            (0.5, "0%", "50%"),
            (0.1234, "0.0%", "12.3%"),
            (5, "000", "005"),
            (5, "0.##", "5"),
            (5.1, "0.##", "5.1"),
            (2.675, "0.00", "2.68"),
            (1.005, "0.00", "1.01"),
            (1e15, "General", "1E+15"),
            (123456, "0.00E+00", "1.23E+05"),
            (0.00012, "0.0E+0", "1.2E-4"),
            (0.75, "# ?/?", "3/4"),
            (2.5, "# ?/?", "2 1/2"),
            (12_345_678, '0.0,,"M"', "12.3M"),
            (-3, "0;(0)", "(3)"),
            (0, '0;-0;"none"', "none"),
            (-5, "[Red]-0;[Blue]0", "5"),
            (150, "[>100]0!;0", "150!"),
            (19.9, "[$€-407] 0.00", "€ 19.90"),
            (-19.9, "$0.00", "-$19.90"),
            (42, '"No. "0', "No. 42"),
            (3, "@", "3"),
            (0.1 + 0.2, "General", "0.3"),
            (1 / 3, "General", "0.3333333333"),
            (float("nan"), "0.00", "#NUM!"),
            (7, "", "7"),
            (7, None, "7"),
        ]:
            self.assertEqual(show(value, code), (shown, False), (value, code))

    def test_dates_look_as_in_a_sheet(self):
        moment = datetime.datetime(2024, 3, 5, 14, 7, 9)
        for code, shown in [
            ("yyyy-mm-dd", "2024-03-05"),
            ("d/m/yy", "5/3/24"),
            ("dd.mm.yyyy hh:mm", "05.03.2024 14:07"),
            ("mmm d, yyyy", "Mar 5, 2024"),
            ("dddd, d mmmm", "Tuesday, 5 March"),
            ("h:mm AM/PM", "2:07 PM"),
            ("mm:ss", "07:09"),
            ("[$-409]d-mmm-yy", "5-Mar-24"),
            ("General", "2024-03-05"),
        ]:
            self.assertEqual(show(moment, code), (shown, True), code)
        self.assertEqual(show(45000.75, "yyyy-mm-dd hh:mm")[0], "2023-03-15 18:00")
        self.assertEqual(show(1.5, "[h]:mm")[0], "36:00")
        self.assertEqual(show(datetime.timedelta(hours=30), "[hh]:mm:ss")[0], "30:00:00")
        self.assertEqual(show(datetime.time(9, 30), "h:mm")[0], "9:30")
        self.assertEqual(show(1, "yyyy-mm-dd")[0], "1900-01-01")
        self.assertEqual(show(61, "yyyy-mm-dd")[0], "1900-03-01")

    def test_other_values_are_shown_plainly(self):
        self.assertEqual(show(True, "0.00"), ("TRUE", False))
        self.assertEqual(show(None, "0"), ("", False))
        self.assertEqual(show("a", '"<"@">"'), ("<a>", False))
        self.assertEqual(show("a", "0;-0;0"), ("a", False))

    def test_no_format_ends_a_preview(self):
        long = "0" * 5000
        codes = ["yyyy" * 500, long, "0." + long, "/" * 50, ";;;;;;", '"', "\\", "[", "[h", "E+0"]
        codes += ["0E+" + long, "?/?" * 100, ",", "%" * 3, "[>]0", "[>1.2.3]0", "*", "_"]
        values = [0, -1, 1.5, 1e300, -1e-300, 10**400, "text", datetime.datetime(9999, 12, 31)]
        values.append(datetime.timedelta(days=-5))
        for code in codes:
            for value in values:
                try:
                    show(value, code)
                except (ValueError, OverflowError, ArithmeticError) as error:
                    self.fail(f"{value!r:.40} {code!r:.40}: {error!r}")


if __name__ == "__main__":
    unittest.main()
