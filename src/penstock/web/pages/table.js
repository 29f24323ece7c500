// A table whose rows keep their elements, and so the focus, when other rows change. See table.py for the cells.
export default {
  template: `
    <div>
      <q-markup-table flat bordered dense tabindex="0">
        <caption class="unseen">{{ label }}</caption>
        <thead>
          <tr>
            <th v-if="chooses" scope="col" class="choose">
              <q-checkbox dense aria-label="select all" :model-value="allChosen" @update:model-value="chooseAll" />
            </th>
            <th v-for="column in columns" :key="column.name" scope="col" :class="column.align"
              :aria-sort="column.sorted">
              <button v-if="column.sorts" class="sort" tabindex="0" @click="$emit('sort-by', column.name)">
                {{ column.label }}{{ arrow(column.sorted) }}</button>
              <template v-else>{{ column.label }}</template>
            </th>
          </tr>
        </thead>
        <tbody>
          <tr v-for="row in rows" :key="row.key" :class="{ chosen: chosen.includes(row.key) }">
            <td v-if="chooses" class="choose">
              <q-checkbox dense :aria-label="'select ' + text(row[columns[0].name])"
                :model-value="chosen.includes(row.key)" @update:model-value="choose(row.key)" />
            </td>
            <td v-for="column in columns" :key="column.name" :class="[column.align, column.wraps && 'wrap']">
              <button v-if="row[column.name]?.open" class="open" tabindex="0"
                :aria-haspopup="row[column.name].open == 'dialog' ? 'dialog' : null"
                @click="$emit('open', row.key)">{{ row[column.name].text }}</button>
              <a v-else-if="row[column.name]?.href" :href="row[column.name].href">{{ row[column.name].text }}</a>
              <svg v-else-if="row[column.name]?.points !== undefined" width="100" height="20"
                viewBox="0 -1 100 22" role="img" :aria-label="row[column.name].text">
                <polyline :points="row[column.name].points" fill="none" stroke="currentColor"
                  stroke-width="1.5" /></svg>
              <template v-else>{{ text(row[column.name]) }}</template>
            </td>
          </tr>
          <tr v-if="!rows.length"><td :colspan="columns.length + (chooses ? 1 : 0)">none</td></tr>
        </tbody>
      </q-markup-table>
      <div v-if="chosen.length" class="muted" role="status">
        {{ chosen.length }} selected <button class="open" tabindex="0" @click="chooseNone">clear selection</button>
      </div>
    </div>
  `,
  props: { label: String, columns: Array, rows: Array, chooses: Boolean },
  emits: ["open", "sort-by", "choose"],
  data: () => ({ chosen: [] }),
  computed: {
    allChosen() {
      const count = this.chosen.length;
      return count == 0 ? false : count == this.rows.length ? true : null;
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
    arrow: (sorted) => ({ ascending: " ▲", descending: " ▼" })[sorted] ?? "",
    choose(key) {
      const had = this.chosen.includes(key);
      this.tell(had ? this.chosen.filter((other) => other != key) : [...this.chosen, key]);
    },
    chooseAll(wanted) {
      this.tell(wanted ? this.rows.map((row) => row.key) : []);
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
