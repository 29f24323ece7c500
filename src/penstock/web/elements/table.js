// A table whose rows keep their elements, and so the focus, when other rows change. See table.py for the cells.
// Roles are written out, because on narrow screens rows are shown as cards, and a browser takes the roles of
// elements that are not displayed as a table.
export default {
  template: `
    <div>
      <div class="table-box" tabindex="0" role="group" :aria-label="label">
        <table class="table" role="table">
          <caption class="unseen">{{ label }}</caption>
          <thead role="rowgroup">
            <tr role="row">
              <th v-if="chooses" role="columnheader" scope="col" class="choose">
                <q-checkbox dense aria-label="select all" :model-value="allChosen" @update:model-value="chooseAll" />
              </th>
              <th v-for="column in columns" :key="column.name" role="columnheader" scope="col"
                :class="[column.align, column.sorts && 'sorts']" :aria-sort="column.sorted">
                <button v-if="column.sorts" class="sort" tabindex="0" @click="$emit('sort-by', column.name)">
                  {{ column.label }}{{ arrow(column.sorted) }}</button>
                <template v-else>{{ column.label }}</template>
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            <tr v-for="row in shown" :key="row.key" role="row"
              :class="{ chosen: chosen.includes(row.key), chooses }">
              <td v-if="chooses" role="cell" class="choose">
                <q-checkbox dense :aria-label="'select ' + text(row[columns[0].name])"
                  :model-value="chosen.includes(row.key)" @update:model-value="choose(row.key)" />
              </td>
              <td v-for="(column, place) in columns" :key="column.name" role="cell" :data-label="column.label" :title="long(row[column.name])"
                :class="[column.align, column.wraps && 'wrap', column.wide && 'half', place == 0 && 'first']">
                <button v-if="row[column.name]?.open" class="open" tabindex="0"
                  :aria-haspopup="row[column.name].open == 'dialog' ? 'dialog' : null"
                  @click="$emit('open', row.key)">{{ row[column.name].text }}</button>
                <a v-else-if="row[column.name]?.href" :href="row[column.name].href"
                  :class="level(row[column.name])">{{ row[column.name].text }}</a>
                <svg v-else-if="row[column.name]?.points !== undefined" class="spark" width="100" height="20"
                  viewBox="0 -1 100 22" preserveAspectRatio="none" role="img" :aria-label="row[column.name].text">
                  <polyline :points="row[column.name].points" fill="none" stroke="currentColor"
                    stroke-width="1.5" vector-effect="non-scaling-stroke" /></svg>
                <span v-else-if="row[column.name]?.level" :class="level(row[column.name])">{{
                  row[column.name].text }}</span>
                <span v-else-if="row[column.name]?.heat !== undefined" :class="'heat h' + row[column.name].heat">{{
                  row[column.name].text }}</span>
                <div v-else-if="column.wraps" class="clamp">{{ text(row[column.name]) }}</div>
                <template v-else>{{ text(row[column.name]) }}</template>
              </td>
            </tr>
            <tr v-if="!shown.length" role="row">
              <td role="cell" class="note" :colspan="columns.length + (chooses ? 1 : 0)">
                <div v-if="rows" class="empty"><q-icon name="inbox" aria-hidden="true" /> {{ empty }}</div>
                <div v-else class="empty loading">Loading</div>
              </td>
            </tr>
          </tbody>
        </table>
      </div>
      <div v-if="chosen.length" class="selection" role="status">
        {{ chosen.length }} selected
        <button class="open" tabindex="0" @click="chooseNone">clear selection</button>
      </div>
    </div>
  `,
  props: { label: String, columns: Array, rows: Array, chooses: Boolean, empty: String },
  emits: ["open", "sort-by", "choose"],
  data: () => ({ chosen: [] }),
  computed: {
    shown() {
      return this.rows ?? []; // null until the first rows arrive
    },
    allChosen() {
      const count = this.chosen.length;
      return count == 0 ? false : count == this.shown.length ? true : null;
    },
  },
  watch: {
    // Rows that are no longer shown are deselected.
    rows(rows) {
      const kept = this.chosen.filter((key) => rows.some((row) => row.key == key));
      if (kept.length < this.chosen.length) this.tell(kept);
    },
  },
  methods: {
    text: (cell) => cell?.text ?? cell,
    long: (cell) => ((cell?.text ?? cell)?.length > 40 ? (cell?.text ?? cell).slice(0, 500) : null),
    level: (cell) => (cell.level ? ["level", cell.level] : null),
    arrow: (sorted) => ({ ascending: " ▲", descending: " ▼" })[sorted] ?? "",
    choose(key) {
      const had = this.chosen.includes(key);
      this.tell(had ? this.chosen.filter((other) => other != key) : [...this.chosen, key]);
    },
    chooseAll(wanted) {
      this.tell(wanted ? this.shown.map((row) => row.key) : []);
    },
    chooseNone() {
      this.tell([]);
    },
    tell(chosen) {
      this.chosen = chosen;
      this.$emit("choose", chosen);
    },
  },
};
